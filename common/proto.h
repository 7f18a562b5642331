/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * proto.h - the wire format's constants, limits and header. docs/protocol.md explains them.
 *
 * No behaviour here: sizes, numbers and the one packed structure that is on the wire. Bodies are in
 * msg.def, operations in ops.def.
 */
#ifndef PVFS_PROTO_H
#define PVFS_PROTO_H

#include "compat.h"

#define PVFS_MAGIC		0x53465650u	/* "PVFS" as little-endian bytes */
#define PVFS_HDR_VERSION	1		/* of the framing below */
#define PVFS_PROTO_VERSION	11		/* of the operations; exchanged in AUTH */
#define PVFS_PORT_MGR		7100
#define PVFS_PORT_IOD		7101		/* the first iod of a node */

/* Limits; every one is checked where a message is decoded. */
#define PVFS_NAME_MAX		255u		/* bytes of one name */
#define PVFS_SYMLINK_MAX	4095u		/* bytes of a symbolic link's target */
#define PVFS_SYMLINK_EAGER	255u		/* of one that comes with the answer to LOOKUP */
#define PVFS_NGROUPS_MAX	1024u		/* supplementary groups in one credential */
#define PVFS_VOLUME_MAX		63u		/* bytes of a volume's name */
#define PVFS_HOST_MAX		255u		/* bytes of a host's name */
#define PVFS_BODY_MAX		16384u		/* bytes of a body */
#define PVFS_PAYLOAD_MAX	(4u << 20)	/* bytes of a payload, any operation */
#define PVFS_READDIR_MAX	(256u << 10)	/* bytes of a readdir reply's payload */
#define PVFS_XATTR_NAME_MAX	255u	/* bytes of an extended attribute's name, prefix included */
#define PVFS_XATTR_VALUE_MAX	65536u		/* bytes of its value */
#define PVFS_XATTR_LIST_MAX	65536u	/* bytes of all names of an inode, a NUL behind each */
#define PVFS_ACL_MAX		1024u		/* entries of one ACL */
/* as the value of an extended attribute */
#define PVFS_ACL_BYTES_MAX	(4u + 8u * PVFS_ACL_MAX)
#define PVFS_IOD_MAX		1024u		/* iods of a volume */
#define PVFS_CREDITS_MAX	1024u		/* messages in flight on a connection */
#define PVFS_SLOTS_MAX		1024u		/* slots of a session */
#define PVFS_CHANNELS_MAX	256u		/* connections of a session to one server */
/* hard links to one inode, entries of "." in one directory */
#define PVFS_LINK_MAX		65000u
#define PVFS_FILE_MAX		0x7fffffffffffffffull
#define PVFS_COPY_MAX		(64u << 20)	/* bytes that one COPY copies */
#define PVFS_RUNS_MAX		15360u		/* bytes of the runs in one READ_LIST or WRITE_LIST */
#define PVFS_BLOCKS_MAX		65536u		/* blocks of which it asks for something */
#define PVFS_HOLD_MAX_MS	10000u		/* requests wait no longer for a TRIM that does not come */
/* in a wreport, for trunc_gen: ask the iods, I do not know */
#define PVFS_GEN_ASK		(~0u)
#define PVFS_RECALL_MAX		16u		/* inodes in one RECALL */
#define PVFS_HOLDER_MAX		281u		/* bytes of one struct pvfs_holder, encoded, at most */
#define PVFS_FILES_MAX		128u		/* files of one FILES_READ or FILES_WRITE */
#define PVFS_FILES_LIST		11264u		/* bytes of their names and what else is said of them */
#define PVFS_FILES_BYTES	262144u		/* and of what is in them */
#define PVFS_FILE_RESULT_LEN	8u		/* bytes of an answer about one, encoded */
#define PVFS_SHARERS_MAX	480u		/* sessions that one OPEN_SHARED opens a file for */
#define PVFS_SHARER_LEN		24u		/* bytes of each, encoded */
#define PVFS_CLOSE_MAX		32u		/* opens that one CLOSE ends */
#define PVFS_CLOSING_LEN	52u		/* bytes of each, encoded */
#define PVFS_LK_TICKETS_MAX	16u		/* calls told of in one LOCK_GRANT */
#define PVFS_SSIZE_MIN		4096u
#define PVFS_SSIZE_MAX		(1u << 30)
#define PVFS_APPEND_STEPS_MAX	(128u << 10)	/* bytes of one call that are appended unit by unit */
#define PVFS_SSIZE_DEFAULT	65536u
#define PVFS_STUFF_MAX		65536u		/* largest layout.stuff_max, bytes */
#define PVFS_EAGER_MAX		16384u		/* bytes of a head that comes with CREATE or OPEN */
#define PVFS_STUFF_KEEP		(~0u)		/* in a request: as the directory, or the file, has it */
#define PVFS_NONCE_LEN		32
#define PVFS_MAC_LEN		32
#define PVFS_CAP_MAC_LEN	16
#define PVFS_TICKET_LEN		16
#define PVFS_UUID_LEN		16
/* mac, version, role: in front of both bodies of AUTH in every version */
#define PVFS_AUTH_HEAD_LEN	(PVFS_MAC_LEN + 3u)
#define PVFS_KEY_LEN		32		/* cluster and server key, bytes */
#define PVFS_ROOT_INO		1ull

/*
 * In EVICT: this session and all that were opened before it, as when the mgr has lost the table of
 * them. Sessions are counted from 1 and never get here.
 */
#define PVFS_SESSION_ALL	(1ull << 63)

/* Is @session one of those that EVICT named? A server's connection, which has 0, is not. */
static inline bool pvfs_session_named(u64 named, u64 session)
{
	return named & PVFS_SESSION_ALL ? session && session <= (named & ~PVFS_SESSION_ALL) :
					  session == named;
}

/* Of an AUTH body, either one, of at least PVFS_AUTH_HEAD_LEN bytes, of whatever version */
static inline u16 pvfs_auth_version(const u8 *body)
{
	return get_unaligned_le16(body + PVFS_MAC_LEN);
}

static inline u8 pvfs_auth_role(const u8 *body)
{
	return body[PVFS_MAC_LEN + 2];
}

/* Header flags */
#define PVFS_HF_REPLY		0x1u		/* else a request */
#define PVFS_HF_CALLBACK	0x2u		/* the exchange was started by the accepting side */
#define PVFS_HF_PAYLOAD_CRC	0x4u		/* payload_crc is valid and must be checked */
/* may have been sent before, on a connection that was lost */
#define PVFS_HF_RESEND		0x8u
#define PVFS_HF_ALL		0xfu

/**
 * struct pvfs_hdr - the header in front of every message, 64 bytes, little-endian
 * @magic: PVFS_MAGIC
 * @version: PVFS_HDR_VERSION
 * @zero: 0
 * @op: number from ops.def
 * @flags: PVFS_HF_*
 * @tag: matches a reply to its request; the requester's choice, unique among its open requests
 * @session: session id, 0 where there is none
 * @slot: slot of an ONCE request, else 0
 * @credits: in replies: how many more messages the requester may have in flight from now on
 * @slot_seq: sequence number in @slot, counted from 1; 0 where no slot is used
 * @status: in replies: 0 or a wire errno (errmap.c); in requests 0
 * @body_len: bytes of the body, at most PVFS_BODY_MAX
 * @payload_len: bytes of the payload, at most PVFS_PAYLOAD_MAX
 * @body_crc: crc32c of the body, 0 when it is empty
 * @payload_crc: crc32c of the payload when PVFS_HF_PAYLOAD_CRC, else 0
 * @reserved: 0
 * @hdr_crc: crc32c of the 60 bytes before it
 */
struct pvfs_hdr {
	__le32 magic;
	u8 version;
	u8 zero;
	__le16 op;
	__le32 flags;
	__le32 tag;
	__le64 session;
	__le16 slot;
	__le16 credits;
	__le32 slot_seq;
	__le32 status;
	__le32 body_len;
	__le32 payload_len;
	__le32 body_crc;
	__le32 payload_crc;
	__le32 reserved[2];
	__le32 hdr_crc;
} __attribute__((packed, aligned(8)));

#define PVFS_HDR_LEN 64
_Static_assert(sizeof(struct pvfs_hdr) == PVFS_HDR_LEN, "pvfs_hdr is 64 bytes on the wire");

/* Operation flags, see ops.def */
#define PVFS_OPF_ONCE	0x01u
#define PVFS_OPF_SERVER	0x02u
#define PVFS_OPF_PRE	0x04u
#define PVFS_OPF_NOSESS	0x08u
#define PVFS_OPF_SLOW	0x10u

enum pvfs_op {
#define PVFS_OP(num, NAME, name, by, flags) PVFS_OP_##NAME = num,
#include "ops.def"
#undef PVFS_OP
	PVFS_OP_LIMIT = 128,	/* all numbers are below */
};

/* Who may be at an end of a connection */
enum pvfs_role {
	PVFS_ROLE_ANY = 0,	/* in ops.def only */
	PVFS_ROLE_CLIENT = 1,
	PVFS_ROLE_MGR = 2,
	PVFS_ROLE_IOD = 3,
};

/*
 * Feature bits of this PVFS_PROTO_VERSION; an unknown bit in a peer's *required* set is refused by
 * name.
 */
#define PVFS_FEAT_CAPS		(1ull << 0)	/* data requests carry capabilities */
#define PVFS_FEAT_PAYLOAD_CRC	(1ull << 1)	/* payload checksums may be asked for */
#define PVFS_FEATURES		(PVFS_FEAT_CAPS | PVFS_FEAT_PAYLOAD_CRC)

/* pvfs_attr.flags */
/* someone else has it open for writing: size and times may move */
#define PVFS_AF_WRITERS		0x1u
/* a writer vanished and an iod does not answer: size is the last known */
#define PVFS_AF_SIZE_UNKNOWN	0x2u

#define PVFS_AF_XATTR		0x4u	/* has extended attributes, ACLs counted */
#define PVFS_AF_ACL		0x8u	/* has an access ACL: the mode's group bits are its mask */
#define PVFS_AF_DEFACL		0x10u	/* a directory that has a default ACL */
#define PVFS_AF_CAPS		0x20u	/* has security.capability: a write has to take it away */
#define PVFS_AF_LEASE		0x40u	/* these attributes, and a directory's names, are leased */
#define PVFS_AF_STUFFED		0x80u	/* its bytes are with the mgr: HEAD_READ, HEAD_WRITE */
#define PVFS_AF_DRAFT		0x100u	/* nobody else is told of it before this session is asked */
#define PVFS_AF_WLEASE		0x200u	/* nor what it writes to it: it has a WRITE lease */
#define PVFS_AF_KEPT		0x400u	/* LEASE came before the WRITE lease went that a CLOSE has ended */
#define PVFS_AF_OUT		0x800u	/* of CREATE, OPEN: the session is out of the file, or is being told to go */
#define PVFS_AF_LASTS		0x1000u	/* of TURN: nobody comes in to write before that is recalled */

/* pvfs_session_open_req.flags */
#define PVFS_SO_LEASES		0x1u	/* the client answers RECALL: it may be given leases */

/* pvfs_holder.flags */
#define PVFS_HD_LEASE		0x1u	/* it has a lease on the inode */
#define PVFS_HD_DRAFT		0x2u	/* which is a draft of its */
#define PVFS_HD_RECALL		0x4u	/* it was asked, or will be, to give that up, or to go out, and has not answered */
#define PVFS_HD_OWN		0x8u	/* it is the asking session */
#define PVFS_HD_WRITE		0x10u	/* it is a WRITE lease: for as long as the session lives */
#define PVFS_HD_OUT		0x20u	/* it is out of the file: it asks before it reads or writes */

/* pvfs_holders_rep.flags */
/* after a restart: not all clients have told what they have open, and nobody knows who has leases */
#define PVFS_HR_GRACE		0x1u

/* open flags on the wire (CREATE, OPEN, CLOSE, RECLAIM) */
#define PVFS_O_READ		0x01u
#define PVFS_O_WRITE		0x02u
#define PVFS_O_CREAT		0x04u
#define PVFS_O_EXCL		0x08u
#define PVFS_O_TRUNC		0x10u
#define PVFS_O_EXEC		0x20u	/* opened to be executed: checks x instead of r */
#define PVFS_O_DIRECTORY	0x40u
#define PVFS_O_TMPFILE		0x80u	/* CREATE: without a name, for LINK to give it one */
#define PVFS_O_STRIPED		0x100u	/* CREATE: a new file is not to be stuffed */
#define PVFS_O_EAGER		0x200u	/* CREATE, OPEN: the head too, if it has a lease and fits */
#define PVFS_O_DRAFT		0x400u	/* CREATE: a new file, if it is stuffed, is to be a draft */
/* CREATE, OPEN, to write: a WRITE lease is wanted; RECLAIM: there is one */
#define PVFS_O_WLEASE		0x800u
#define PVFS_O_OUT		0x1000u	/* RECLAIM: the session is out of the file */

/* pvfs_unstuff_req.flags */
#define PVFS_US_WLEASE		0x1u	/* a draft is to be under a WRITE lease from now on */

/* pvfs_report_req.flags */
#define PVFS_RP_RECALLED	0x1u	/* all is written: the WRITE lease has been given up */

/* pvfs_turn_req.flags */
#define PVFS_TN_ALONE		0x1u	/* all others are to go out; with a WRITE lease */
#define PVFS_TN_READ		0x2u	/* those of them who may write; with a lease to read that lasts */

/* pvfs_flush_req.flags */
#define PVFS_FL_RECALLED	0x1u	/* because of a RECALL: the lease has been given up */
/* whatever the version: it may have been done, in a session that is over */
#define PVFS_FL_AGAIN		0x2u
#define PVFS_FL_WLEASE		0x4u	/* it is to be under a WRITE lease from now on */

/* pvfs_head_write_req.flags */
#define PVFS_HW_APPEND		0x1u	/* at the end, wherever that is: attr.size tells */
#define PVFS_HW_WLEASE		0x2u	/* a WRITE lease is wanted */

/* pvfs_setattr_req.valid */
#define PVFS_SA_MODE		0x001u
#define PVFS_SA_UID		0x002u
#define PVFS_SA_GID		0x004u
#define PVFS_SA_SIZE		0x008u
#define PVFS_SA_ATIME		0x010u
#define PVFS_SA_MTIME		0x020u
#define PVFS_SA_ATIME_NOW	0x040u
#define PVFS_SA_MTIME_NOW	0x080u
#define PVFS_SA_OPENED		0x100u	/* size change through a descriptor open for writing */
/* drop setuid/setgid: data was or will be written by a non-owner */
#define PVFS_SA_KILL_PRIV	0x200u
#define PVFS_SA_KILL_CAPS	0x400u	/* drop security.capability: data was or will be written */
/* drop setgid, also where the group can't execute it: the client has found that it is to go */
#define PVFS_SA_KILL_SGID	0x800u

/* pvfs_setxattr_req.flags */
#define PVFS_XA_CREATE		0x1u	/* must not be there: -EEXIST */
#define PVFS_XA_REPLACE		0x2u	/* must be there: -ENODATA */

/* READDIR flags */
#define PVFS_RD_ATTRS		0x1u	/* want attributes with the entries */
#define PVFS_RD_ONE		0x2u	/* want one entry: for comparisons */

/* cred.flags */
/* the client has checked that it may be done; the ids are whose a new inode is */
#define PVFS_CRED_CHECKED	0x1u

/* RENAME flags, with Linux's values; one at most */
#define PVFS_RN_NOREPLACE	0x1u
#define PVFS_RN_EXCHANGE	0x2u	/* alone */
/* leaves a character device 0:0 behind, as overlayfs wants it */
#define PVFS_RN_WHITEOUT	0x4u
#define PVFS_RN_ALL		0x7u

/* FSYNC flags */
#define PVFS_FS_DATASYNC	0x1u

/* SPACE modes: allocate, or one of PUNCH and ZERO */
#define PVFS_SP_KEEP_SIZE	0x1u	/* the datafile does not become longer */
/* give the bytes back: they read as zeros; implies KEEP_SIZE */
#define PVFS_SP_PUNCH		0x2u
#define PVFS_SP_ZERO		0x4u	/* zeros that have their place on disk */
#define PVFS_SP_ALL		0x7u

#define PVFS_SEEK_NONE		0xffffffffffffffffull

/* locks: kinds. FLOCK are apart from the others, RECORD and OFD differ in who owns them */
#define PVFS_LK_FLOCK		1u	/* flock(2): of an open file description, whole file */
#define PVFS_LK_RECORD		2u	/* fcntl(2): of a process */
#define PVFS_LK_OFD		3u	/* fcntl(2), F_OFD_*: of an open file description */
#define PVFS_LK_APPEND		4u	/* writes with O_APPEND: of a session */
/* types */
#define PVFS_LK_UNLOCK		0u
#define PVFS_LK_READ		1u
#define PVFS_LK_WRITE		2u
/* flags of LOCK and LOCK_CANCEL */
#define PVFS_LK_WAIT		0x1u	/* LOCK: queue it rather than refuse it */
#define PVFS_LK_RECLAIM		0x2u	/* LOCK: held already when the mgr was restarted */
#define PVFS_LK_KEEP		0x4u	/* LOCK_CANCEL: if it was granted meanwhile it is to stay */
/* answers */
#define PVFS_LK_GRANTED		0u
#define PVFS_LK_QUEUED		1u	/* a LOCK_GRANT will tell when to ask again */
/* locks from before a restart are still being told: ask again soon */
#define PVFS_LK_GRACE		2u
#define PVFS_LK_CONFLICT	3u	/* no, and it did not ask to WAIT */
#define PVFS_LK_DEADLOCK	4u	/* no: it would wait for itself (RECORD only) */

/* capability rights */
#define PVFS_CAP_READ		0x1u
#define PVFS_CAP_WRITE		0x2u

/* An operation's static description, one per line of ops.def. */
struct pvfs_op_info {
	const char *name;	/* "LOOKUP" */
	u8 by;			/* enum pvfs_role that serves it */
	u8 flags;		/* PVFS_OPF_* */
};

/**
 * pvfs_op_info - description of operation @op
 * @op: any number, also one from the wire
 *
 * Return: the description, or NULL when no such operation exists.
 */
const struct pvfs_op_info *pvfs_op_info(unsigned int op);

#endif
