/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * With -DREPLAY a model does not search all that may happen: it follows logs of the code, which test/sim/trace writes.
 * A step that the log shows waits until it is the next event; steps that it does not show may be taken at any time.
 * Spin searches for a run of the model that comes to the end of each log. replay.h reads the logs, and tells at the
 * end which have no such run.
 *
 * An event is a word, a node (`me`), and numbers: e[0] and on.
 */
#define E_SENT	1	/* a frame: its type, its number */
#define E_GOT	2	/* the same, read: what it does has happened when the next event of the node comes */
#define E_ASK	3	/* the application sends a message */
#define E_POST	4	/* it posts a receive for a message */
#define E_DONE	5	/* its receive has completed */
#define E_GONE	6	/* its send has completed */
#define E_STATE	7	/* what the node's connection looks like */
#define E_LIMIT	8	/* the model's limit in this log */
#define E_PART	9	/* it has read a part of a frame of this stream */
#define E_PARK	10	/* it asks to park */

#ifdef REPLAY
c_decl {
	\#include "replay.h"
}

short which;		/* log */
short at = -1;		/* its next event */
byte ev = 0, ev_node = 0;
int e[6];

#define IS(what)	(ev == what && ev_node == me)

inline next()
{
	c_code {
		now.at++;
		now.ev = replay_value(now.which, now.at, 0);
		now.ev_node = replay_value(now.which, now.at, 1);
		for (int k = 0; k < 6; k++)
			now.e[k] = replay_value(now.which, now.at, 2 + k);
	}
}

/* Begin with any of the logs. */
inline choose_log()
{
	c_code { replay_load(); };
	do
	:: c_expr { now.which < replay_cnt - 1 } -> which++
	:: break
	od;
	next()
}
#endif
