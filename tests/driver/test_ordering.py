"""The order of tasks: what happens before what, and which pending task runs next."""

from __future__ import annotations

from typing import Any

import pytest

from pyptx.driver.operations import Empty, Free, Operation
from pyptx.driver.ordering import Order, Task

STREAM: Any = object()
"""Streams are only keys here."""


def add(order: Order, *before: Task, operation: Operation | None = None) -> Task:
    tasks = 0
    for task in before:
        tasks |= task.bit | task.before
    return order.add(operation or Empty(), tasks, STREAM, "", None)


def run(order: Order, *tasks: Task) -> None:
    for task in tasks:
        order.done |= task.bit


@pytest.fixture
def order() -> Order:
    return Order()


def test_tasks_without_a_path_are_unordered_once_they_have_run(order: Order) -> None:
    first, second = add(order), add(order)
    third, fourth = add(order, first), add(order)
    run(order, first, second, third)
    assert list(order.find_unordered(third)) == [second]
    assert list(order.find_unordered(first)) == [second, third]
    assert list(order.find_unordered(fourth)) == [first, second, third]


def test_the_task_that_was_submitted_last_runs_first(order: Order) -> None:
    first, second = add(order), add(order)
    third, fourth = add(order, first), add(order)
    sequence: list[Task] = []
    while (task := order.choose_last(first.bit | second.bit | third.bit)) is not None:
        run(order, task)
        sequence.append(task)
    assert sequence == [first, third, second]
    assert order.choose_last(order.every) is fourth


def test_memory_is_freed_after_all_work_that_was_submitted_before(order: Order) -> None:
    first = add(order)
    free = add(order, operation=Free(0))
    assert order.choose_last(order.every) is first
    run(order, first)
    assert order.choose_last(order.every) is free
    assert list(order.find_unordered(free)) == [first]


def test_what_the_host_has_waited_for_is_before_all_later_work(order: Order) -> None:
    first, second = add(order), add(order)
    run(order, first, second)
    order.after[STREAM] = first.bit
    order.wait(first.bit)
    assert (add(order).before, order.after) == (first.bit, {STREAM: first.bit})


def test_everything_is_forgotten_when_the_host_has_waited_for_it(order: Order) -> None:
    first, second = add(order), add(order)
    run(order, first, second)
    order.after[STREAM] = order.every
    order.wait(order.every)
    assert (order.tasks, order.after, order.done, order.known, order.every) == ([], {}, 0, 0, 0)
    assert add(order).number == 0


def test_tasks_are_dropped_without_running(order: Order) -> None:
    add(order, add(order))
    order.drop()
    assert (order.tasks, order.choose_last(order.every)) == ([], None)


def test_a_few_thousand_tasks_are_remembered(order: Order) -> None:
    for _ in range(4095):
        add(order)
    assert not order.is_full
    add(order)
    assert order.is_full
