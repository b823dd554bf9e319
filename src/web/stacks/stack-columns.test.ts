import { expect, test } from '@jest/globals';
import { chosenColumns, gridTemplate, toggleColumn } from './stack-columns.ts';

test('columns are read from the URL, in their own order', () => {
  expect(chosenColumns('changed,owner,nonsense')).toEqual(['owner', 'changed']);
  expect(chosenColumns('none')).toEqual([]);
  expect(chosenColumns('nonsense')).toEqual(['status', 'tags', 'resources', 'changed']);
});

test('a column is added and taken away', () => {
  expect(toggleColumn(['status', 'changed'], 'owner')).toBe('status,owner,changed');
  expect(toggleColumn(['status', 'changed'], 'status')).toBe('changed');
  expect(toggleColumn(['status'], 'status')).toBe('none');
});

test('tags are hidden on small screens', () => {
  expect(gridTemplate(['tags', 'changed'], false).split(' ').at(-1)).toBe('120px');
  expect(gridTemplate(['tags', 'changed'], true)).toBe('36px minmax(180px, 5fr) 120px');
});
