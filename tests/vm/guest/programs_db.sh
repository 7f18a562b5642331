# SPDX-License-Identifier: GPL-2.0-only
#
# Data bases on two mounts, for programs.sh: sqlite3 and PostgreSQL. What they
# acknowledged is there, also when they were killed.
# shellcheck shell=bash disable=SC2154

program short 300 sqlite_rollback "sqlite3: writers on two mounts and a reader, rollback journal"
program long 300 sqlite_truncate "sqlite3: the same, journal_mode=truncate and synchronous=extra"
program short 300 sqlite_wal "sqlite3: two writers and a reader on one mount, write-ahead log"
program short 60 sqlite_killed "sqlite3: killed in a transaction, rolled back on the other mount"
program short 60 sqlite_wal_killed "sqlite3: killed with a write-ahead log, recovered"
program long 900 postgres_all "postgres: initdb, pgbench, kill -9 of the postmaster, recovery"

# What writer $1 says to sqlite3 for $2 transactions; after each its number is printed.
sqlite_script()
{
	awk -v w="$1" -v n="$2" 'BEGIN {
		for (i = 0; i < n; i++) {
			print "BEGIN IMMEDIATE;"
			printf "INSERT INTO row VALUES (%d, %d, hex(randomblob(%d)));\n", w, i, i * 131 % 3000
			print "UPDATE total SET n = n + 1;"
			print "COMMIT;"
			printf "SELECT %d || \"|\" || %d;\n", w, i
		}
	}'
}

# sqlite_writers DB-OF-ONE DB-OF-TWO DB-OF-READER TRANSACTIONS JOURNAL [PRAGMA...]
# In no state that a reader sees do the rows and their number differ.
sqlite_writers()
{
	local one=$1 two=$2 reader=$3 n=$4 journal=$5 pragmas w pid1 pid2 pid3
	local -r t=$tmp/work/sqlite

	shift 5
	pragmas=$(for p; do echo "PRAGMA $p;"; done)
	rm -rf "$t"
	mkdir -p "$t"
	[ "$(sqlite3 -bail "$one" "PRAGMA journal_mode = $journal")" = "$journal" ]
	sqlite3 -bail "$one" "CREATE TABLE row (w INT, i INT, pad TEXT, PRIMARY KEY (w, i));
		CREATE INDEX by_pad ON row (pad);
		CREATE TABLE total (n INT);
		INSERT INTO total VALUES (0)"
	for w in 1 2; do
		{
			echo '.timeout 100000'
			echo "PRAGMA journal_mode = $journal;"
			echo "$pragmas"
			sqlite_script $w "$n"
		} >"$t/script$w"
	done
	sqlite3 -bail -batch "$one" <"$t/script1" >"$t/said1" &
	pid1=$!
	sqlite3 -bail -batch "$two" <"$t/script2" >"$t/said2" &
	pid2=$!
	# The reader ends when it has seen all of it.
	(
		until [ -e "$t/end" ]; do
			sqlite3 -bail -batch -cmd '.timeout 100000' "$reader" \
				'SELECT (SELECT n FROM total) - (SELECT count(*) FROM row), n FROM total' || exit 1
		done >"$t/seen"
	) &
	pid3=$!
	wait $pid1
	wait $pid2
	: >"$t/end"
	wait $pid3
	echo "the reader looked $(wc -l <"$t/seen") times, at $(uniq "$t/seen" | wc -l) states"
	refuse grep -v '^0|' "$t/seen"
	grep -h '|' "$t"/said[12] | sort >"$t/acked"
	[ "$(wc -l <"$t/acked")" = $((2 * n)) ]
	for db in "$one" "$two"; do
		[ "$(sqlite3 "$db" 'PRAGMA integrity_check')" = ok ]
		sqlite3 "$db" "SELECT w || '|' || i FROM row" | sort | diff "$t/acked" -
		[ "$(sqlite3 "$db" 'SELECT n FROM total')" = $((2 * n)) ]
	done
	drop_page_cache
	[ "$(sqlite3 "$two" 'PRAGMA integrity_check')" = ok ]
}

# As drop_caches, but also where that is not allowed.
drop_page_cache()
{
	sync
	[ -z "${PVFS_GUEST-}" ] || echo 3 >/proc/sys/vm/drop_caches
}

sqlite_n()
{
	[ "$level" = long ] && echo 300 || echo "$1"
}

sqlite_rollback()
{
	sqlite_writers "$PWD/db" "$B/sqlite_rollback/db" "$B/sqlite_rollback/db" "$(sqlite_n 20)" delete
}

sqlite_truncate()
{
	sqlite_writers "$PWD/db" "$B/sqlite_truncate/db" "$PWD/db" "$(sqlite_n 25)" truncate 'synchronous = extra'
}

# A log is shared through mapped memory, which no two machines have: one mount.
sqlite_wal()
{
	sqlite_writers "$PWD/db" "$PWD/db" "$PWD/db" "$(sqlite_n 40)" wal 'wal_autocheckpoint = 20'
}

# sqlite_holds DB SQL...: runs SQL and holds there, in the transaction, until killed.
# Prints its process id when it holds.
sqlite_holds()
{
	local t=$tmp/work/holds db=$1 pid

	shift
	rm -rf "$t"
	mkdir -p "$t"
	mkfifo "$t/in"
	# The shell reads commands to the end of its input, and we don't end it.
	sqlite3 -bail -batch "$db" <"$t/in" >"$t/said" 2>&1 &
	pid=$!
	exec 7>"$t/in"
	printf '%s\n' "$@" "SELECT 'holds';" >&7
	await 60 grep -q '^holds' "$t/said"
	kill -KILL $pid
	wait $pid || true
	exec 7>&-
	cat "$t/said"
}

sqlite_killed()
{
	local db=$PWD/db other=$B/sqlite_killed/db

	sqlite3 -bail "$db" "CREATE TABLE t (i INTEGER PRIMARY KEY, v TEXT);
		WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000)
		INSERT INTO t SELECT i, 'before ' || hex(zeroblob(200)) FROM c"
	# A cache of ten pages does not hold it: the data base has been written to when the journal is left.
	sqlite_holds "$db" 'PRAGMA cache_size = 10;' 'BEGIN;' \
		"UPDATE t SET v = 'after ' || v;" 'DELETE FROM t WHERE i > 1000;'
	[ -s "$other-journal" ]
	grep -q 'after before' "$other"
	[ "$(sqlite3 "$other" "SELECT count(*), sum(v LIKE 'before%') FROM t")" = '2000|2000' ]
	[ "$(sqlite3 "$other" 'PRAGMA integrity_check')" = ok ]
	[ ! -e "$db-journal" ]
	[ "$(sqlite3 "$db" "SELECT count(*), sum(v LIKE 'before%') FROM t")" = '2000|2000' ]
}

sqlite_wal_killed()
{
	local db=$PWD/db

	sqlite3 -bail "$db" "PRAGMA journal_mode = wal; CREATE TABLE t (i INTEGER PRIMARY KEY, v TEXT)"
	sqlite_holds "$db" 'PRAGMA cache_size = 10;' \
		"WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 500)
		INSERT INTO t SELECT i, 'kept ' || hex(zeroblob(200)) FROM c;" \
		'BEGIN;' "UPDATE t SET v = 'lost';" 'DELETE FROM t WHERE i > 100;'
	[ -s "$db-wal" ]
	[ "$(sqlite3 "$db" "SELECT count(*), sum(v LIKE 'kept%') FROM t")" = '500|500' ]
	[ "$(sqlite3 "$db" 'PRAGMA integrity_check')" = ok ]
	# The last to close leaves no log.
	[ ! -e "$db-wal" ]
	# With the log gone the other mount may have it.
	[ "$(sqlite3 "$db" 'PRAGMA journal_mode = delete')" = delete ]
	[ "$(sqlite3 "$B/sqlite_wal_killed/db" "SELECT count(*), sum(v LIKE 'kept%') FROM t")" = '500|500' ]
}

# ---------------------------------------------------------------- PostgreSQL

pg_bin()
{
	local d

	for d in /usr/lib/postgresql/*/bin; do
		[ ! -x "$d/initdb" ] || echo "$d"
	done | sort -V | tail -n 1
}

# As postgres' own user: it refuses to be run by root.
pg()
{
	setpriv --reuid postgres --regid postgres --init-groups \
		env -C "$pg_home" PATH="$pg_path:/usr/bin:/bin" HOME="$pg_home" PGHOST="$pg_home" \
		PGUSER=postgres "$@"
}

pg_start()
{
	pg pg_ctl -s -w -t 200 -D "$1/data" -l "$pg_home/log" start ||
		{ cat "$pg_home/log"; return 1; }
}

pg_sql()
{
	pg psql -XAtq -v ON_ERROR_STOP=1 -c "$1" postgres
}

# Sums of what pgbench's transactions did are the same wherever one looks.
pg_consistent()
{
	local sums

	sums=$(pg_sql "SELECT (SELECT sum(abalance) FROM pgbench_accounts),
		(SELECT sum(tbalance) FROM pgbench_tellers),
		(SELECT sum(bbalance) FROM pgbench_branches),
		(SELECT coalesce(sum(delta), 0) FROM pgbench_history)")
	echo "sums: $sums"
	[ "$(tr '|' '\n' <<<"$sums" | sort -u | wc -l)" = 1 ]
	[ "$(pg_sql 'SELECT count(*) FROM pgbench_accounts')" = $((scale * 100000)) ]
}

# All processes of the cluster, killed; the postmaster first, so that it cleans up nothing.
pg_kill()
{
	local pid children

	pid=$(head -n 1 "$1/data/postmaster.pid") || return 0
	children=$(pgrep -P "$pid" | tr '\n' ' ')
	# shellcheck disable=SC2086 # a list of numbers
	kill -KILL "$pid" $children 2>/dev/null || true
	for p in $pid $children; do
		await 30 eval "! kill -0 $p"
	done
}

pg_step()
{
	echo "$((SECONDS - pg_t0)) s: $*"
}

postgres_all()
{
	local scale=1 clients=2 transactions=30 done_before acked total
	local pg_t0=$SECONDS pg_path pg_home=$tmp/work/pg d=$PWD

	pg_path=$(pg_bin)
	[ -n "$pg_path" ]
	[ "$level" != long ] || { scale=3; clients=8; transactions=500; }
	rm -rf "$pg_home"
	mkdir -p "$pg_home"
	chown postgres: "$pg_home" "$d"
	# What a failure leaves running would keep the mount busy.
	trap '[ ! -e "$d/data/postmaster.pid" ] || pg_kill "$d"' EXIT
	pg_step initdb
	said pg initdb -A trust -k --no-locale -E UTF8 --wal-segsize=1 -D "$d/data"
	pg tee -a "$d/data/postgresql.conf" >"$pg_home/settings" <<-END
		listen_addresses = ''
		unix_socket_directories = '$pg_home'
		max_connections = 20
		shared_buffers = 16MB
	END
	pg_step start
	pg_start "$d"
	pg_step "pgbench -i"
	pg pgbench -q -i -s $scale postgres 2>&1 | tail -n 3
	pg_step pgbench
	said pg pgbench -n -c $clients -j 2 -t $transactions postgres
	grep -q "actually processed: $((clients * transactions))/$((clients * transactions))\$" "$tmp/work/said"
	[ "$(pg_sql 'SELECT count(*) FROM pgbench_history')" = $((clients * transactions)) ]
	pg_consistent
	pg_step "kill -9 under load"
	done_before=$((clients * transactions))
	# Its log has a line for each transaction that was acknowledged.
	(pg pgbench -n -c $clients -j 1 -T 500 -l --log-prefix=acked postgres >"$pg_home/bench2" 2>&1 || true) &
	local bench=$!
	await 100 eval '[ "$(pg_sql "SELECT count(*) FROM pgbench_history")" -ge $((done_before + 20)) ]'
	pg_kill "$d"
	wait $bench
	acked=$(cat "$pg_home"/acked.* | wc -l)
	pg_step "recovery, $acked were acknowledged"
	[ "$acked" -ge 10 ]
	mv "$pg_home/log" "$pg_home/log.1"
	pg_start "$d"
	grep 'not properly shut down' "$pg_home/log"
	total=$(pg_sql 'SELECT count(*) FROM pgbench_history')
	echo "$total - $done_before transactions are there"
	# What was not acknowledged may be there all the same, one of each client.
	[ $((total - done_before)) -ge "$acked" ]
	[ $((total - done_before)) -le $((acked + clients)) ]
	pg_consistent
	pg_step "amcheck, stop, checksums"
	pg pg_amcheck --install-missing --heapallindexed postgres
	pg pg_ctl -s -w -t 200 -D "$d/data" stop -m fast
	[ ! -e "$d/data/postmaster.pid" ]
	pg pg_checksums --check -D "$d/data" | tail -n 3
	# The other mount has the same bytes.
	diff -r "$d/data" "$B/postgres_all/data"
	pg_step end
}
