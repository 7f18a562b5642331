// SPDX-License-Identifier: GPL-2.0-only
/*
 * modes.c - when the set-id bits go, and what set-group-id on a directory does to what is made in
 * it.
 */
#include "conform.h"
#include <sys/mman.h>

static int mutate_write(const char *p)
{
	int h = fs->open(p, O_WRONLY, 0), r;

	if (h < 0)
		return h;
	r = fs->pwrite(h, "y", 1, 0);
	fs->close(h);
	return r;
}

static int mutate_write_none(const char *p)
{
	int h = fs->open(p, O_WRONLY, 0), r;

	if (h < 0)
		return h;
	r = fs->pwrite(h, "y", 0, 0);
	fs->close(h);
	return r;
}

static int mutate_append(const char *p)
{
	int h = fs->open(p, O_WRONLY | O_APPEND, 0), r;

	if (h < 0)
		return h;
	r = fs->pwrite(h, "y", 1, 0);
	fs->close(h);
	return r;
}

static int mutate_writev(const char *p)
{
	struct iovec iov[2] = { { "y", 1 }, { "z", 1 } };
	int h = fs->open(p, O_WRONLY, 0), r;

	if (h < 0)
		return h;
	r = fs->pwritev(h, iov, 2, 1);
	fs->close(h);
	return r;
}

static int mutate_truncate(const char *p)
{
	return fs->truncate(p, 2);
}

static int mutate_truncate_same(const char *p)
{
	return fs->truncate(p, 5);
}

static int mutate_ftruncate(const char *p)
{
	int h = fs->open(p, O_WRONLY, 0), r;

	if (h < 0)
		return h;
	r = fs->ftruncate(h, 2);
	fs->close(h);
	return r;
}

static int mutate_trunc(const char *p)
{
	int h = fs->open(p, O_WRONLY | O_TRUNC, 0);

	return h < 0 ? h : fs->close(h);
}

static int mutate_fallocate(const char *p)
{
	int h = fs->open(p, O_WRONLY, 0), r;

	if (h < 0)
		return h;
	r = fs->fallocate(h, 0, 0, 100);
	fs->close(h);
	return r;
}

static int mutate_punch(const char *p)
{
	int h = fs->open(p, O_WRONLY, 0), r;

	if (h < 0)
		return h;
	r = fs->fallocate(h, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 3);
	fs->close(h);
	return r;
}

static int mutate_copy(const char *p)
{
	int h = fs->open(p, O_WRONLY, 0), in = fs->open("source", O_RDONLY, 0), r;
	off_t from = 0, to = 0;

	r = h < 0 ? h : in < 0 ? in : fs->copy_file_range(in, &from, h, &to, 5, 0);
	if (h >= 0)
		fs->close(h);
	if (in >= 0)
		fs->close(in);
	return r;
}

static int mutate_utimens(const char *p)
{
	return fs->utimens(p, NULL);
}

static int mutate_link(const char *p)
{
	int r = fs->link(p, "pub/l");

	return r ? r : fs->unlink("pub/l");
}

static int mutate_rename(const char *p)
{
	int r = fs->rename(p, "pub/l", 0);

	return r ? r : fs->rename("pub/l", p, 0);
}

static int mutate_xattr(const char *p)
{
	return fs->setxattr(p, "user.a", "b", 1, 0);
}

static const struct {
	const char *name;
	int (*run)(const char *p);
	bool writes;
} mutations[] = {
	{ "write", mutate_write, true },
	{ "write of no bytes", mutate_write_none, false },
	{ "write O_APPEND", mutate_append, true },
	{ "writev", mutate_writev, true },
	{ "truncate", mutate_truncate, true },
	{ "truncate to its size", mutate_truncate_same, true },
	{ "ftruncate", mutate_ftruncate, true },
	{ "open O_TRUNC", mutate_trunc, true },
	{ "fallocate", mutate_fallocate, true },
	{ "fallocate PUNCH_HOLE", mutate_punch, true },
	{ "copy_file_range", mutate_copy, true },
	{ "utimensat", mutate_utimens, false },
	{ "link and unlink", mutate_link, false },
	{ "rename there and back", mutate_rename, false },
	{ "setxattr", mutate_xattr, false },
};

/* One who writes without being privileged cannot leave a program that runs as somebody else. */
static void writes(void)
{
	static const struct { mode_t before, after; } bits[] = {
		{ 04777, 0777 }, { 02777, 0777 }, { 06777, 0777 }, { 04666, 0666 }, { 07777, 01777 }, { 0777, 0777 },
		{ 01666, 01666 }, { 06676, 0676 },
		/* Not a program for its group: the bit is its members' to keep. */
		{ 02666, 02666 }, { 02767, 02767 }, { 06666, 02666 },
	};
	static const struct who *const who[] = { &ROOT, &OWNER, &MEMBER, &OTHER };
	struct stat st;
	size_t m, b, w;

	if (live()) {
		OK(fs->mkdir("pub", 0777));
		make_file("source", 5, 0644);
	}
	for (m = 0; m < ARRAY_SIZE(mutations); m++)
	for (b = 0; b < ARRAY_SIZE(bits); b++)
	for (w = 0; w < ARRAY_SIZE(who); w++) {
		bool drops = mutations[m].writes && who[w] != &ROOT;
		mode_t want = drops ? bits[b].after : bits[b].before;
		int r;

		if (drops && who[w] == &OTHER)
			want &= ~S_ISGID;
		/* Linking another's set-id file is refused where that is protected. */
		if (mutations[m].run == mutate_link && who[w] != &ROOT && who[w] != &OWNER)
			continue;
		if (!row("set-id/%s of %04o by %s leaves %04o", mutations[m].name, bits[b].before, who[w]->name, want))
			continue;
		wipe("pub/f");
		make_file("pub/f", 5, 0600);
		OK(fs->chown("pub/f", OWNER.uid, OWNER.gid));
		OK(fs->chmod("pub/f", bits[b].before));
		be(who[w]);
		r = mutations[m].run("pub/f");
		be(&ROOT);
		OK(r);
		OK(fs->stat("pub/f", &st));
		EQ(st.st_mode & 07777, want);
	}
}

/*
 * What is made in a set-group-id directory has the directory's group, and directories have the bit
 * as well.
 */
static void inherit(void)
{
	static const struct who *const who[] = { &ROOT, &OWNER, &OTHER };
	static const mode_t dirs[] = { 0777, 02777, 03777 };
	static const mode_t modes[] = { 0644, 0755, 02755, 02644, 06755 };
	static const enum type types[] = { T_FILE, T_DIR, T_SYMFILE, T_FIFO, T_SOCK };
	struct stat st;
	size_t d, w, t, m;

	for (d = 0; d < ARRAY_SIZE(dirs); d++)
	for (w = 0; w < ARRAY_SIZE(who); w++)
	for (t = 0; t < ARRAY_SIZE(types); t++)
	for (m = 0; m < ARRAY_SIZE(modes); m++) {
		bool sg = dirs[d] & S_ISGID, in = in_group(who[w], G_OTHER);
		gid_t gid = sg ? G_OTHER : who[w]->gid;
		mode_t want = modes[m];
		int h, r = 0;

		if (types[t] == T_SYMFILE) {
			if (m)
				continue;
			want = 0777;
		} else if (types[t] == T_DIR) {
			want = (want & 01777) | (sg ? S_ISGID : 0);
		} else if (sg && (want & 02010) == 02010 && who[w] != &ROOT && !in) {
			/* Nobody makes a program for a group that they are not in. */
			want &= ~S_ISGID;
		}
		if (!row("set-gid-dir/%s %04o made in %04o by %s is %04o of group %d", type_name[types[t]], modes[m],
			 dirs[d], who[w]->name, want, gid))
			continue;
		OK(fs->mkdir("d", 0777));
		OK(fs->chown("d", -1, G_OTHER));
		OK(fs->chmod("d", dirs[d]));
		be(who[w]);
		switch (types[t]) {
		case T_FILE:
			h = fs->open("d/x", O_CREAT | O_EXCL | O_RDWR, modes[m]);
			r = h < 0 ? h : fs->close(h);
			break;
		case T_DIR:
			r = fs->mkdir("d/x", modes[m]);
			break;
		case T_SYMFILE:
			r = fs->symlink("to", "d/x");
			break;
		default:
			r = fs->mknod("d/x", type_ifmt(types[t]) | modes[m], 0);
		}
		be(&ROOT);
		OK(r);
		OK(fs->lstat("d/x", &st));
		EQ(st.st_uid, who[w]->uid);
		EQ(st.st_gid, gid);
		EQ(st.st_mode & 07777, want);
		wipe("d");
	}
	if (row("set-gid-dir/what is moved in keeps its group")) {
		OK(fs->mkdir("d", 0777));
		OK(fs->chown("d", -1, G_OTHER));
		OK(fs->chmod("d", 02777));
		make("f", T_FILE);
		OK(fs->rename("f", "d/f", 0));
		OK(fs->stat("d/f", &st));
		EQ(st.st_gid, 0);
	}
	if (row("set-gid-dir/what is linked in keeps its group")) {
		make("g", T_FILE);
		OK(fs->link("g", "d/g"));
		OK(fs->stat("d/g", &st));
		EQ(st.st_gid, 0);
	}
	if (row("set-gid-dir/three levels down")) {
		OK(fs->mkdir("d/1", 0755));
		OK(fs->mkdir("d/1/2", 0755));
		OK(fs->mkdir("d/1/2/3", 0755));
		OK(fs->stat("d/1/2/3", &st));
		EQ(st.st_mode & 07777, 02755);
		EQ(st.st_gid, G_OTHER);
	}
}

static void stores(void)
{
	char *p;
	int h;

	if (row("set-id/a store by one who is not root, seen in the file")) {
		make_file("f", 5, 0666);
		be(&OTHER);
		h = open("f", O_RDWR);
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, h, 0);
		WANT(p != MAP_FAILED);
		if (p != MAP_FAILED) {
			char c;

			*p = 'q';
			OK(sys(msync(p, 4096, MS_SYNC)));
			munmap(p, 4096);
			EQ(fs->pread(h, &c, 1, 0), 1);
			EQ(c, 'q');
		}
		close(h);
		be(&ROOT);
		wipe("f");
	}
}

const struct table tables_modes[] = {
	{ "set-id", writes },
	{ "set-gid-dir", inherit },
	{ "set-id-store", stores, true },
	{ NULL },
};
