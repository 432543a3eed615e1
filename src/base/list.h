/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Intrusive lists: the link lives in the object, so no call allocates or fails, and every call is O(1) unless it says
 * otherwise. The owner of a list serialises all calls on it. An object on a list stays where it is in memory.
 *
 *   fab_list   doubly linked ring with a head: remove from anywhere
 *   fab_fifo   singly linked with a tail pointer: append, prepend, take from the front
 */
#ifndef FAB_BASE_LIST_H
#define FAB_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* The object of the given type whose member is at ptr. */
#define fab_container(ptr, type, member) ((type *) ((char *) (ptr) - offsetof(type, member)))

/* Head of a list, and link in an object. A link that is on no list points at itself once initialised or removed. */
struct fab_list {
	struct fab_list *next;
	struct fab_list *prev;
};

/* Initialiser of a static head. */
#define FAB_LIST_INIT(head) { &(head), &(head) }

/* Make head an empty list, or a link one that is on no list. */
static inline void fab_list_init(struct fab_list *head)
{
	head->next = head;
	head->prev = head;
}

/* True if head has no object, or if a link is on no list. */
static inline bool fab_list_empty(const struct fab_list *head)
{
	return head->next == head;
}

/* Put link, which is on no list, behind the element (or head) prev. */
static inline void fab_list_add_after(struct fab_list *prev, struct fab_list *link)
{
	link->prev = prev;
	link->next = prev->next;
	prev->next->prev = link;
	prev->next = link;
}

/* Put link, which is on no list, first. */
static inline void fab_list_add_head(struct fab_list *head, struct fab_list *link)
{
	fab_list_add_after(head, link);
}

/* Put link, which is on no list, last. */
static inline void fab_list_add_tail(struct fab_list *head, struct fab_list *link)
{
	fab_list_add_after(head->prev, link);
}

/* Take link off its list; it may be removed again without harm. */
static inline void fab_list_remove(struct fab_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	fab_list_init(link);
}

/* The same for a link that is not looked at again before it is put on a list: it is left as it is. */
static inline void fab_list_drop(struct fab_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
}

/* Take the first link off the list; NULL if it is empty. */
static inline struct fab_list *fab_list_pop_front(struct fab_list *head)
{
	struct fab_list *link = head->next;

	if (link == head)
		return NULL;
	fab_list_remove(link);
	return link;
}

/* Move everything on list from to the end of list to; from is then empty. */
static inline void fab_list_splice_tail(struct fab_list *to, struct fab_list *from)
{
	if (fab_list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	fab_list_init(from);
}

/* First object of a list, or NULL. */
#define fab_list_first(head, type, member) \
	(fab_list_empty(head) ? NULL : fab_container((head)->next, type, member))

/* Last object of a list, or NULL. */
#define fab_list_last(head, type, member) \
	(fab_list_empty(head) ? NULL : fab_container((head)->prev, type, member))

/* Walk all links from the front. The body must not remove link. In the _safe form it may, but not the one behind it,
 * which the loop keeps in tmp. */
#define fab_list_for_each(head, link) \
	for ((link) = (head)->next; (link) != (head); (link) = (link)->next)
#define fab_list_for_each_safe(head, link, tmp) \
	for ((link) = (head)->next, (tmp) = (link)->next; (link) != (head); (link) = (tmp), (tmp) = (link)->next)

/* Link in an object of a fab_fifo. */
struct fab_fifo_link {
	struct fab_fifo_link *next;
};

/* Queue of objects in order of arrival. tail points to where the next link is stored; in an empty queue that is the
 * head, so a queue in use must not be moved or copied. */
struct fab_fifo {
	struct fab_fifo_link *head;
	struct fab_fifo_link **tail;
};

/* Initialiser of a static queue. */
#define FAB_FIFO_INIT(fifo) { NULL, &(fifo).head }

/* Make the queue empty. */
static inline void fab_fifo_init(struct fab_fifo *fifo)
{
	fifo->head = NULL;
	fifo->tail = &fifo->head;
}

/* True if the queue has no object. */
static inline bool fab_fifo_empty(const struct fab_fifo *fifo)
{
	return !fifo->head;
}

/* Put link, which is on no queue, last. */
static inline void fab_fifo_push(struct fab_fifo *fifo, struct fab_fifo_link *link)
{
	link->next = NULL;
	*fifo->tail = link;
	fifo->tail = &link->next;
}

/* Put link, which is on no queue, first. */
static inline void fab_fifo_push_front(struct fab_fifo *fifo, struct fab_fifo_link *link)
{
	if (!fifo->head)
		fifo->tail = &link->next;
	link->next = fifo->head;
	fifo->head = link;
}

/* Take the first link; NULL if the queue is empty. */
static inline struct fab_fifo_link *fab_fifo_pop(struct fab_fifo *fifo)
{
	struct fab_fifo_link *link = fifo->head;

	if (!link)
		return NULL;
	fifo->head = link->next;
	if (!fifo->head)
		fifo->tail = &fifo->head;
	return link;
}

/* Take out the link that follows prev, or the first one if prev is NULL. It must exist. */
static inline struct fab_fifo_link *fab_fifo_remove_after(struct fab_fifo *fifo, struct fab_fifo_link *prev)
{
	struct fab_fifo_link **place = prev ? &prev->next : &fifo->head;
	struct fab_fifo_link *link = *place;

	*place = link->next;
	if (!link->next)
		fifo->tail = place;
	return link;
}

/* Move everything in queue from to the end of queue to; from is then empty. */
static inline void fab_fifo_splice(struct fab_fifo *to, struct fab_fifo *from)
{
	if (fab_fifo_empty(from))
		return;
	*to->tail = from->head;
	to->tail = from->tail;
	fab_fifo_init(from);
}

/* First object of a queue, or NULL. */
#define fab_fifo_first(fifo, type, member) \
	((fifo)->head ? fab_container((fifo)->head, type, member) : NULL)

/* Walk all links from the front. prev is the link before, NULL at the first. The body may remove link by
 * fab_fifo_remove_after(fifo, prev), if it leaves the loop afterwards. */
#define fab_fifo_for_each(fifo, link, prev) \
	for ((prev) = NULL, (link) = (fifo)->head; (link); (prev) = (link), (link) = (link)->next)

/* Walk all links from the front. The body may free the object of link without unlinking it (teardown). */
#define fab_fifo_for_each_safe(fifo, link, tmp) \
	for ((link) = (fifo)->head; (link) && ((tmp) = (link)->next, 1); (link) = (tmp))

#endif
