/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * base/list.h: order, removal anywhere, and both while walking.
 */
#include "base/unit.h"

#include "base/list.h"

struct item {
	int number;
	struct fab_list link;
	struct fab_fifo_link fifo_link;
};

static struct item items[6];

/* The numbers on a list, as digits of one decimal number; walked from both ends, which must agree. */
static int numbers(struct fab_list *head)
{
	int forward = 0, backward = 0, place = 1;
	struct fab_list *link;

	fab_list_for_each(head, link)
		forward = forward * 10 + fab_container(link, struct item, link)->number;
	for (link = head->prev; link != head; link = link->prev, place *= 10)
		backward += fab_container(link, struct item, link)->number * place;
	assert_int_equal(forward, backward);
	return forward;
}

static int fifo_numbers(struct fab_fifo *fifo)
{
	struct fab_fifo_link *link, *prev;
	int digits = 0;

	fab_fifo_for_each(fifo, link, prev) {
		assert_ptr_equal(prev ? prev->next : fifo->head, link);
		digits = digits * 10 + fab_container(link, struct item, fifo_link)->number;
	}
	return digits;
}

static int set_up(void **state)
{
	int i;

	(void) state;
	for (i = 0; i < 6; i++)
		items[i] = (struct item) { .number = i };
	return 0;
}

static void list_keeps_order(void **state)
{
	struct fab_list head = FAB_LIST_INIT(head);

	(void) state;
	assert_true(fab_list_empty(&head));
	assert_null(fab_list_first(&head, struct item, link));
	assert_null(fab_list_pop_front(&head));
	fab_list_add_tail(&head, &items[2].link);
	fab_list_add_tail(&head, &items[3].link);
	fab_list_add_head(&head, &items[1].link);
	fab_list_add_after(&items[2].link, &items[5].link);
	assert_int_equal(numbers(&head), 1253);
	assert_ptr_equal(fab_list_first(&head, struct item, link), &items[1]);
	assert_ptr_equal(fab_list_pop_front(&head), &items[1].link);
	assert_int_equal(numbers(&head), 253);
}

static void list_removes_twice_without_harm(void **state)
{
	struct fab_list head = FAB_LIST_INIT(head);

	(void) state;
	fab_list_add_tail(&head, &items[1].link);
	fab_list_add_tail(&head, &items[2].link);
	fab_list_remove(&items[1].link);
	fab_list_remove(&items[1].link);
	assert_true(fab_list_empty(&items[1].link));
	assert_int_equal(numbers(&head), 2);
}

static void list_lets_the_walker_remove(void **state)
{
	struct fab_list head = FAB_LIST_INIT(head), *link, *tmp;
	int i;

	(void) state;
	for (i = 1; i < 6; i++)
		fab_list_add_tail(&head, &items[i].link);
	fab_list_for_each_safe(&head, link, tmp)
		if (fab_container(link, struct item, link)->number % 2)
			fab_list_remove(link);
	assert_int_equal(numbers(&head), 24);
}

static void list_splices(void **state)
{
	struct fab_list to = FAB_LIST_INIT(to), from = FAB_LIST_INIT(from);

	(void) state;
	fab_list_splice_tail(&to, &from);
	assert_true(fab_list_empty(&to));
	fab_list_add_tail(&from, &items[3].link);
	fab_list_add_tail(&from, &items[4].link);
	fab_list_splice_tail(&to, &from);
	assert_true(fab_list_empty(&from));
	fab_list_add_tail(&from, &items[5].link);
	fab_list_splice_tail(&to, &from);
	assert_int_equal(numbers(&to), 345);
}

static void fifo_keeps_order(void **state)
{
	struct fab_fifo fifo;

	(void) state;
	fab_fifo_init(&fifo);
	assert_true(fab_fifo_empty(&fifo));
	assert_null(fab_fifo_pop(&fifo));
	fab_fifo_push_front(&fifo, &items[2].fifo_link);
	fab_fifo_push(&fifo, &items[3].fifo_link);
	fab_fifo_push_front(&fifo, &items[1].fifo_link);
	assert_int_equal(fifo_numbers(&fifo), 123);
	assert_ptr_equal(fab_fifo_first(&fifo, struct item, fifo_link), &items[1]);
	while (fab_fifo_pop(&fifo))
		;
	fab_fifo_push(&fifo, &items[4].fifo_link);
	assert_int_equal(fifo_numbers(&fifo), 4);
}

/* Taking out the last one moves the tail back: what is pushed next must not be lost. */
static void fifo_removes_anywhere(void **state)
{
	struct fab_fifo fifo = FAB_FIFO_INIT(fifo);
	int i;

	(void) state;
	for (i = 1; i < 5; i++)
		fab_fifo_push(&fifo, &items[i].fifo_link);
	assert_ptr_equal(fab_fifo_remove_after(&fifo, &items[3].fifo_link), &items[4].fifo_link);
	fab_fifo_push(&fifo, &items[5].fifo_link);
	assert_int_equal(fifo_numbers(&fifo), 1235);
	assert_ptr_equal(fab_fifo_remove_after(&fifo, NULL), &items[1].fifo_link);
	assert_ptr_equal(fab_fifo_remove_after(&fifo, &items[2].fifo_link), &items[3].fifo_link);
	assert_int_equal(fifo_numbers(&fifo), 25);
}

static void fifo_splices(void **state)
{
	struct fab_fifo to = FAB_FIFO_INIT(to), from = FAB_FIFO_INIT(from);

	(void) state;
	fab_fifo_splice(&to, &from);
	fab_fifo_push(&from, &items[1].fifo_link);
	fab_fifo_splice(&to, &from);
	assert_true(fab_fifo_empty(&from));
	fab_fifo_push(&to, &items[2].fifo_link);
	fab_fifo_push(&from, &items[3].fifo_link);
	fab_fifo_splice(&to, &from);
	fab_fifo_push(&to, &items[4].fifo_link);
	assert_int_equal(fifo_numbers(&to), 1234);
}

/* The walker of teardown may overwrite what it stands on. */
static void fifo_lets_the_walker_free(void **state)
{
	struct fab_fifo fifo = FAB_FIFO_INIT(fifo);
	struct fab_fifo_link *link, *tmp;
	int cnt = 0, i;

	(void) state;
	for (i = 1; i < 5; i++)
		fab_fifo_push(&fifo, &items[i].fifo_link);
	fab_fifo_for_each_safe(&fifo, link, tmp) {
		link->next = (void *) 1;
		cnt++;
	}
	assert_int_equal(cnt, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(list_keeps_order, set_up),
		cmocka_unit_test_setup(list_removes_twice_without_harm, set_up),
		cmocka_unit_test_setup(list_lets_the_walker_remove, set_up),
		cmocka_unit_test_setup(list_splices, set_up),
		cmocka_unit_test_setup(fifo_keeps_order, set_up),
		cmocka_unit_test_setup(fifo_removes_anywhere, set_up),
		cmocka_unit_test_setup(fifo_splices, set_up),
		cmocka_unit_test_setup(fifo_lets_the_walker_free, set_up),
	};

	return cmocka_run_group_tests_name("base/list", tests, NULL, NULL);
}
