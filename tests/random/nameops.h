/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nameops.h - the model of nameops: a small tree whose every name, inode and attribute is known.
 *
 * names_model.c is the tree and the walk of a path through it, names_check.c compares it with what
 * a side shows, names_ops.c and names_attrs.c have the operations and what each must return,
 * nameops.c draws them.
 */
#ifndef NAMEOPS_H
#define NAMEOPS_H

#include "rnd.h"

#define NAMES		5	/* in a directory: "a" to "e", so that they meet often */
#define DEPTH_MAX	7
#define NODES_MAX	90	/* more are not made */
#define DATA_MAX	4096	/* bytes in a file */
#define XATTRS		3
#define XATTR_MAX	900
#define HANDLES		8
#define LINKS_MAX	40	/* symbolic links in a walk */

enum mtime_state {
	MTIME_ANY,		/* changed or not, nobody says */
	MTIME_RECENT,		/* not before this run */
	MTIME_EXACT,		/* as utimensat set it */
};

struct xattr_val {
	bool there;
	int len;
	unsigned char val[XATTR_MAX];
};

struct node {
	struct node *next;		/* all that live */
	mode_t mode;			/* type too */
	uid_t uid;
	gid_t gid;
	int links;			/* of directories: 1 while it has a name */
	int handles;
	bool linkable;	/* made by O_TMPFILE, without O_EXCL, without a name so far */
	ino_t ino;			/* 0: not seen yet */
	struct timespec ctime;		/* last seen: it does not go back */
	enum mtime_state mtime_state;
	struct timespec mtime;
	dev_t rdev;
	struct node *parent, *entry[NAMES];	/* directories */
	char target[32];		/* symbolic links */
	int size;			/* regular files */
	unsigned char *bytes;
	struct xattr_val xattr[XATTRS];
};

/* Where a walk ended. */
struct walk {
	struct node *dir;	/* the directory of the last component... */
	int name;		/* ...which is this one; -1: a dot */
	struct node *node;	/* or NULL */
	int links;
	bool escaped;		/* it would leave the tree: not to be tried */
};

struct handle {
	struct node *node;	/* NULL: free */
	int fd, side;
	bool readable, writable;
};

struct name_state {
	int sides;
	uint64_t seed, op;
	bool refused;		/* the last operation failed, as it should */
	int root_fd[RND_SIDES];
	struct node *root, *all;
	int nodes;
	struct handle handle[HANDLES];
	time_t start;
	bool have_user_xattr, have_trusted_xattr, have_tmpfile;
};

extern struct name_state names;
extern const char *const name_xattrs[XATTRS];
extern struct rnd name_rnd;

/* names_model.c */
struct node *node_new(mode_t mode, struct node *dir);
/* Frees what has neither name nor handle. */
void node_settle(struct node *n);
/* 0 with @w filled, whether or not the last component is there; or what the kernel says. */
int walk_path(const char *path, bool follow, struct walk *w);
void dir_set(struct node *dir, int name, struct node *n);
void dir_changed(struct node *dir);
bool dir_empty(const struct node *dir);
/* Is @a @n itself or above it? */
bool is_above(const struct node *a, const struct node *n);
int node_depth(const struct node *n);
/* How many levels are below @n. */
int node_height(const struct node *n);
int node_nlink(const struct node *n);
void file_resize(struct node *n, int size);

/* names_check.c */
void check_stat(struct node *n, const struct stat *st, const char *what);
/* lstat of @path through every side. */
void check_path(const char *path);
void check_list(int fd, struct node *dir, const char *what);
/* Everything, through every side. */
void check_tree(void);
/* All attributes of @n, by @path through @side or by @fd. */
void check_xattrs(struct node *n, int side, const char *path);
void check_content(struct node *n, int fd, const char *what);
/* What a side's path names for calls that have no *at form. */
const char *proc_path(int side, const char *path);

/* names_ops.c: each draws its arguments; false: these are not to be tried, nothing was done. */
struct name_op {
	const char *name;
	unsigned int weight;
	bool makes;		/* left out when there are enough nodes */
	bool (*run)(int side);
	uint64_t done, refused;
};
extern struct name_op name_ops[];
void handles_close(void);
/* What was tried must have ended with @err, 0 for well; says which. */
bool outcome(long r, int err);
/* A path of less than 32 bytes, along what is there, mostly. */
void draw_path(char *path);
mode_t draw_mode(bool dir);
/* An open file, or an open directory, or NULL. */
struct handle *draw_handle(bool want_dir);
void handle_drop(struct handle *h);
/* walk_path to what must be there: ENOENT when it is not. */
int walk_old(const char *path, bool follow, struct walk *w);

/* Says what comes next, for the report. */
#define NOTE(side, fmt, ...) \
	rnd_note("%llu side %d: " fmt, (unsigned long long)names.op, side, ##__VA_ARGS__)

/* Asks what the file system has, in the empty tree. */
void names_probe(void);

/* names_attrs.c: those of the operations that change no name. */
bool op_chmod(int side);
bool op_chown(int side);
bool op_utimens(int side);
bool op_setxattr(int side);
bool op_removexattr(int side);
bool op_getxattr(int side);
bool op_truncate(int side);
bool op_write_handle(int side);
bool op_read_handle(int side);
bool op_truncate_handle(int side);
bool op_close(int side);
bool op_open_dir(int side);
bool op_list(int side);
bool op_stat(int side);
bool op_readlink(int side);

#endif
