// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * storeid.c - the mark in a store directory and the lock on it; see storeid.h.
 *
 * The mark is written to a temporary name, synced and renamed, so a crash leaves a marked
 * directory or an empty one with a left-over that the next attempt replaces.
 */
#include "storeid.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK "pvfs.store"
#define MARK_TMP "pvfs.store.new"
#define LOCK "pvfs.lock"

static const char *role_name(u8 role)
{
	return role == PVFS_ROLE_MGR ? "mgr" : role == PVFS_ROLE_IOD ? "iod" : "?";
}

/* What to do about @err, besides what it says itself. */
static const char *advice(int err)
{
	return err == -EACCES ? ": all files of the store must belong to the user that the daemon runs as: chown -R" : "";
}

void pvfs_uuid_text(const u8 uuid[PVFS_UUID_LEN], char out[37])
{
	int i, n = 0;

	for (i = 0; i < PVFS_UUID_LEN; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[n++] = '-';
		n += sprintf(out + n, "%02x", uuid[i]);
	}
}

int pvfs_uuid_parse(const char *text, u8 uuid[PVFS_UUID_LEN])
{
	u8 tmp[PVFS_UUID_LEN];
	int i;

	for (i = 0; i < PVFS_UUID_LEN; i++) {
		char hex[3];

		if (i == 4 || i == 6 || i == 8 || i == 10) {
			if (*text++ != '-')
				return -EINVAL;
		}
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
			return -EINVAL;
		hex[0] = text[0];
		hex[1] = text[1];
		hex[2] = '\0';
		tmp[i] = strtoul(hex, NULL, 16);
		text += 2;
	}
	if (*text)
		return -EINVAL;
	memcpy(uuid, tmp, sizeof(tmp));
	return 0;
}

/* Writes all of @buf to @name in @dfd and makes it last. */
static int write_synced(int dfd, const char *name, const char *buf, size_t n)
{
	int fd, err = 0;

	fd = openat(dfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	while (n) {
		ssize_t w = write(fd, buf, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			err = w ? -errno : -EIO;
			break;
		}
		buf += w;
		n -= w;
	}
	if (!err && fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	return err;
}

/* Nothing in it but what an earlier attempt, a lock or mkfs.ext4 leaves. */
static int check_empty(int dfd, const char *dir, char *err, size_t errlen)
{
	struct dirent *d;
	int fd, rc = 0;
	DIR *dp;

	fd = openat(dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dp = fd < 0 ? NULL : fdopendir(fd);
	if (!dp) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		snprintf(err, errlen, "%s: can't be listed: %s", dir, strerror(-rc));
		return rc;
	}
	while ((d = readdir(dp)) != NULL) {
		if (!strcmp(d->d_name, MARK)) {
			snprintf(err, errlen,
				 "%s: is a PVFS store already; remove the directory if it is not needed",
				 dir);
			rc = -EEXIST;
			break;
		}
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, "..") &&
		    strcmp(d->d_name, MARK_TMP) &&
		    strcmp(d->d_name, LOCK) && strcmp(d->d_name, "lost+found") && !rc) {
			snprintf(err, errlen,
				 "%s: is not empty (there is '%s'); give an empty or a new directory",
				 dir, d->d_name);
			rc = -ENOTEMPTY;
		}
	}
	closedir(dp);
	return rc;
}

/* mkdir -p; only the last directory is the store's, so only that one is private. */
static int make_dirs(const char *dir)
{
	char path[4096], *p;

	if (strlen(dir) >= sizeof(path))
		return -ENAMETOOLONG;
	strcpy(path, dir);
	for (p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	return 0;
}

int pvfs_storeid_create(const char *dir, const struct pvfs_storeid *id, char *err, size_t errlen)
{
	char text[512], uuid[37], parent[4096];
	int dfd, rc, n;

	rc = make_dirs(dir);
	if (rc) {
		snprintf(err, errlen, "%s: can't be made: %s", dir, strerror(-rc));
		return rc;
	}
	dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dfd < 0) {
		rc = -errno;
		snprintf(err, errlen, "%s: can't be opened: %s", dir, strerror(-rc));
		return rc;
	}
	rc = check_empty(dfd, dir, err, errlen);
	if (rc)
		goto out;
	pvfs_uuid_text(id->uuid, uuid);
	n = snprintf(text, sizeof(text), "format %u\nvolume %s\nname %s\nrole %s\nindex %u\n",
		     id->format, uuid,
		     id->name, role_name(id->role), id->index);
	rc = write_synced(dfd, MARK_TMP, text, n);
	if (!rc && renameat(dfd, MARK_TMP, dfd, MARK))
		rc = -errno;
	if (!rc && fsync(dfd))
		rc = -errno;
	if (!rc && snprintf(parent, sizeof(parent), "%s/..", dir) < (int)sizeof(parent)) {
		int pfd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		/* The new directory's name; not ours to insist on if the parent can't be read. */
		if (pfd >= 0) {
			fsync(pfd);
			close(pfd);
		}
	}
	if (rc)
		snprintf(err, errlen, "%s: can't write %s: %s", dir, MARK, strerror(-rc));
out:
	close(dfd);
	return rc;
}

/* Value of line "@key value" in @text; false when there is none or it does not fit in @out. */
static bool mark_value(const char *text, const char *key, char *out, size_t room)
{
	size_t klen = strlen(key), n;

	for (; text && *text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL) {
		if (strncmp(text, key, klen) || text[klen] != ' ')
			continue;
		text += klen + 1;
		n = strcspn(text, "\n");
		if (n >= room)
			return false;
		memcpy(out, text, n);
		out[n] = '\0';
		return true;
	}
	return false;
}

static bool mark_number(const char *text, const char *key, u32 *ret)
{
	char buf[16], *end;
	unsigned long v;

	if (!mark_value(text, key, buf, sizeof(buf)) || !isdigit((unsigned char)buf[0]))
		return false;
	v = strtoul(buf, &end, 10);
	if (*end || v > UINT32_MAX)
		return false;
	*ret = v;
	return true;
}

/* One sentence that names a store: mgr of volume 'v' (uuid). */
static void describe(const struct pvfs_storeid *id, char *out, size_t room)
{
	char uuid[37], idx[16] = "";

	pvfs_uuid_text(id->uuid, uuid);
	if (id->role == PVFS_ROLE_IOD)
		snprintf(idx, sizeof(idx), " %u", id->index);
	snprintf(out, room, "%s%s of volume '%s' (%s)", role_name(id->role), idx, id->name, uuid);
}

int pvfs_storeid_check(const char *dir, const struct pvfs_storeid *want, char *err, size_t errlen)
{
	char path[4096 + 16], text[1024], buf[64], is[192], expected[192];
	struct pvfs_storeid id = { 0 };
	ssize_t n;
	int fd, rc;

	snprintf(path, sizeof(path), "%s/%s", dir, MARK);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		rc = -errno;
		if (rc == -ENOENT || rc == -ENOTDIR)
			snprintf(err, errlen,
				 "%s: is not a PVFS store (no %s): format it with --mkfs, or correct 'store'",
				 dir, MARK);
		else
			snprintf(err, errlen, "%s: can't be read: %s%s", path, strerror(-rc), advice(rc));
		return rc == -ENOTDIR ? -ENOENT : rc;
	}
	n = read(fd, text, sizeof(text) - 1);
	rc = n < 0 ? -errno : 0;
	close(fd);
	if (rc) {
		snprintf(err, errlen, "%s: can't be read: %s", path, strerror(-rc));
		return rc;
	}
	text[n] = '\0';
	if (!mark_number(text, "format", &id.format))
		goto damaged;
	/* Another format may have other lines: look at nothing else before this. */
	if (id.format != want->format) {
		snprintf(err, errlen, "%s: has format %u, %s", dir, id.format,
			 id.format > want->format ?
				 "newer than this program's: use a newer PVFS" :
				 "older than this program's: copy the files out with the PVFS that made it");
		return -EPROTONOSUPPORT;
	}
	if (!mark_value(text, "volume", buf, sizeof(buf)) || pvfs_uuid_parse(buf, id.uuid) ||
	    !mark_value(text, "name", id.name, sizeof(id.name)) ||
	    !mark_value(text, "role", buf, sizeof(buf)) ||
	    !mark_number(text, "index", &id.index))
		goto damaged;
	id.role = !strcmp(buf, "mgr") ? PVFS_ROLE_MGR : !strcmp(buf, "iod") ? PVFS_ROLE_IOD : 0;
	if (!id.role)
		goto damaged;
	if (memcmp(id.uuid, want->uuid, sizeof(id.uuid)) || id.role != want->role ||
	    (id.role == PVFS_ROLE_IOD && id.index != want->index)) {
		describe(&id, is, sizeof(is));
		describe(want, expected, sizeof(expected));
		snprintf(err, errlen,
			 "%s: belongs to %s, expected %s: correct 'store' or 'uuid' in the configuration",
			 dir, is, expected);
		return -ESTALE;
	}
	return 0;
damaged:
	snprintf(err, errlen,
		 "%s: is damaged; expected the lines format, volume, name, role, index", path);
	return -EINVAL;
}

/* What the kernel says of process @pid in @file, a string; empty when there is no such process. */
static void process_file(int pid, const char *file, char *buf, size_t room)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, buf, room - 1);
	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
}

/* Has process @pid been killed, or is it on its way out? Its files are closed late on that way. */
static bool process_ends(int pid)
{
	unsigned long long mask;
	char buf[4096], state;
	unsigned int flags;
	const char *p;

	process_file(pid, "stat", buf, sizeof(buf));
	/* Behind the name, which may have any bytes: state, five numbers, the kernel's PF_ flags. */
	p = strrchr(buf, ')');
	if (p && sscanf(p, ") %c %*d %*d %*d %*d %*d %u", &state, &flags) == 2 &&
	    (state == 'Z' || state == 'X' || flags & 0x4 /* PF_EXITING */))
		return true;
	process_file(pid, "status", buf, sizeof(buf));
	for (p = buf; (p = strstr(p, "Pnd:\t")) != NULL; p++)
		if (sscanf(p, "Pnd:\t%llx", &mask) == 1 && mask & 1ULL << (SIGKILL - 1))
			return true;
	return false;
}

/*
 * Locks @fd as its only user, or returns -errno. Who starts a daemon again right after it was killed finds the lock still
 * held by what is left of it: that is waited for, ten seconds at most. @pid: who has it, as it says itself.
 */
static int lock_store(int fd, char *pid, size_t room)
{
	int tries = 0, alive = 0, rc;
	ssize_t n;

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		rc = -errno;
		n = pread(fd, pid, room - 1, 0);
		pid[n > 0 ? strcspn(pid, "\n") : 0] = '\0';
		/* Between the signal and the exit there is a moment in which neither shows: look twice. */
		if (!process_ends(atoi(pid)))
			alive++;
		if (rc != -EWOULDBLOCK || alive == 3 || ++tries == 1000)
			return rc;
		usleep(10000);
	}
	return 0;
}

int pvfs_store_lock(const char *dir, char *err, size_t errlen)
{
	char path[4096 + 16], pid[16] = "";
	int fd, rc;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, LOCK);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		rc = -errno;
		snprintf(err, errlen, "%s: can't be opened: %s%s", path, strerror(-rc), advice(rc));
		return rc;
	}
	rc = lock_store(fd, pid, sizeof(pid));
	if (rc) {
		if (rc == -EWOULDBLOCK)
			snprintf(err, errlen, "%s: is in use by another daemon%s%s: stop it first",
				 dir, *pid ? ", process " : "", pid);
		else
			snprintf(err, errlen, "%s: can't be locked: %s", path, strerror(-rc));
		close(fd);
		return rc;
	}
	/* Only so that the next one can say who has it. */
	n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) || pwrite(fd, pid, n, 0) != n)
		pid[0] = '\0';
	return fd;
}
