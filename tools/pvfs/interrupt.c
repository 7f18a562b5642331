// SPDX-License-Identifier: GPL-2.0
/*
 * interrupt.c - SIGINT and SIGTERM of a command that has something to bring to its end: it looks whether they have come.
 * As a call may be waiting for a server for good, it ends with its last words when that takes long; and at once with the
 * second signal.
 */
#include "tool.h"
#include <signal.h>
#include <stdatomic.h>

static atomic_bool come;
static const char *_Atomic last_words;
static unsigned int patience;

static void on_alarm(int sig)
{
	const char *words = last_words;

	if (write(STDERR_FILENO, words, strlen(words)) < 0)
		_exit(EXIT_INTERRUPTED);
	_exit(EXIT_INTERRUPTED);
}

static void on_signal(int sig)
{
	int saved = errno;

	come = true;
	alarm(patience);
	errno = saved;
}

/* Was there a signal? */
bool interrupted(void)
{
	return come;
}

/* Other last words from now on; not copied. */
void interrupt_words(const char *words)
{
	last_words = words;
}

/**
 * interrupt_begin - signals do not end the command any more, but interrupted() tells of them
 * @words: written to standard error, with its newline, when it has to end by itself; not copied
 * @seconds: after which that is so
 */
void interrupt_begin(const char *words, unsigned int seconds)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_RESTART };

	last_words = words;
	patience = seconds;
	signal(SIGALRM, on_alarm);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}
