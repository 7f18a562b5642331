// SPDX-License-Identifier: GPL-2.0
/*
 * out.c - a table that is printed for people (libsmartcols) or for programs (JSON: an array of
 * objects).
 */
#include "tool.h"
#include <json-c/json.h>
#include <libsmartcols/libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct out {
	const char *name;
	const struct out_col *cols;
	struct libscols_table *table;	/* NULL with --json */
	struct libscols_line *line;
	struct json_object *top, *rows, *row;	/* NULL without */
};

static void no_memory(void)
{
	fprintf(stderr, "pvfs: out of memory\n");
	exit(EXIT_FAILURE);
}

/**
 * out_new - an empty table
 * @name: what the rows are, the array's name in JSON
 * @cols: kept by reference
 */
struct out *out_new(const char *name, const struct out_col *cols, int n)
{
	struct out *o = calloc(1, sizeof(*o));
	int i;

	if (!o)
		no_memory();
	o->name = name;
	o->cols = cols;
	if (tool.json) {
		o->top = json_object_new_object();
		o->rows = json_object_new_array();
		if (!o->top || !o->rows)
			no_memory();
		json_object_object_add(o->top, name, o->rows);
		return o;
	}
	o->table = scols_new_table();
	if (!o->table)
		no_memory();
	for (i = 0; i < n; i++) {
		if (!scols_table_new_column(o->table, cols[i].title, 0,
					    cols[i].kind == OUT_NUMBER ? SCOLS_FL_RIGHT : 0))
			no_memory();
	}
	return o;
}

/* What follows goes to a new row. */
void out_row(struct out *o)
{
	if (tool.json) {
		o->row = json_object_new_object();
		if (!o->row)
			no_memory();
		json_object_array_add(o->rows, o->row);
		return;
	}
	o->line = scols_table_new_line(o->table, NULL);
	if (!o->line)
		no_memory();
}

void out_text(struct out *o, int col, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		no_memory();
	va_end(ap);
	if (tool.json)
		json_object_object_add(o->row, o->cols[col].key, json_object_new_string(text));
	else
		scols_line_set_data(o->line, col, text);
	free(text);
}

/* Bytes of the UTF-8 character at @s, 0 when it is none. */
static int utf8_len(const unsigned char *s)
{
	int n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 :
		s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0, i;

	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	/* overlong forms, surrogates, beyond U+10FFFF */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/*
 * A file's name, which may be any bytes. In JSON, which must be UTF-8, others become U+FFFD and the
 * bytes follow as "<key>_hex".
 */
void out_name(struct out *o, int col, const char *name)
{
	const unsigned char *s = (const unsigned char *)name;
	char *text, *hex, key[64];
	size_t n = strlen(name), t = 0, i;
	bool bad = false;
	int len;

	if (!tool.json) {
		out_text(o, col, "%s", name);
		return;
	}
	text = malloc(3 * n + 1);
	hex = malloc(2 * n + 1);
	if (!text || !hex)
		no_memory();
	for (i = 0; i < n; i += len) {
		len = utf8_len(s + i);
		if (len) {
			memcpy(text + t, s + i, len);
			t += len;
		} else {
			memcpy(text + t, "\xef\xbf\xbd", 3);
			t += 3;
			len = 1;
			bad = true;
		}
	}
	text[t] = '\0';
	json_object_object_add(o->row, o->cols[col].key, json_object_new_string(text));
	if (bad) {
		for (i = 0; i < n; i++)
			sprintf(hex + 2 * i, "%02x", s[i]);
		snprintf(key, sizeof(key), "%s_hex", o->cols[col].key);
		json_object_object_add(o->row, key, json_object_new_string(hex));
	}
	free(text);
	free(hex);
}

/* @shown: how people see it; NULL: as it is. */
void out_number(struct out *o, int col, uint64_t v, const char *shown)
{
	char buf[32];

	if (tool.json) {
		json_object_object_add(o->row, o->cols[col].key, json_object_new_uint64(v));
		return;
	}
	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)v);
	scols_line_set_data(o->line, col, shown ?: buf);
}

/* JSON only: a member that no column shows; @text is JSON itself. */
void out_extra(struct out *o, const char *key, const char *text)
{
	struct json_object *j;

	if (!tool.json)
		return;
	j = json_tokener_parse(text);
	json_object_object_add(o->row, key, j);
}

/**
 * out_print - print the table and free it
 *
 * Return: 0 or -errno.
 */
int out_print(struct out *o)
{
	int err = 0;

	if (tool.json) {
		puts(json_object_to_json_string_ext(o->top,
						    JSON_C_TO_STRING_PRETTY |
							    JSON_C_TO_STRING_NOSLASHESCAPE));
		json_object_put(o->top);
	} else {
		fflush(stdout);
		err = scols_print_table(o->table);
		scols_unref_table(o->table);
	}
	free(o);
	return err;
}

/* "1.5G" */
const char *human(uint64_t v, char buf[16])
{
	static const char units[] = "BKMGTPE";
	double d = v;
	int i = 0;

	while (d >= 1024 && units[i + 1]) {
		d /= 1024;
		i++;
	}
	if (!i)
		snprintf(buf, 16, "%llu", (unsigned long long)v);
	else
		snprintf(buf, 16, d < 9.95 ? "%.1f%c" : "%.0f%c", d, units[i]);
	return buf;
}
