import { expect, test } from '@jest/globals';
import { listChanges, viewOperation } from './operations.ts';

test('counts the steps of a replacement once per kind and keeps unchanged resources last', () => {
  const changes = listChanges({ same: 40, delete: 1, 'create-replacement': 2, create: 3, update: 0, frobnicate: 1 });
  expect(changes.map(({ op, count }) => `${op} ${count}`)).toEqual([
    ...['create 3', 'delete 1', 'replace 2', 'frobnicate 1', 'same 40'],
  ]);
});

test('shows an unknown operation by its name', () => {
  for (const op of ['frobnicate', '__proto__', 'constructor']) expect(viewOperation(op).done).toBe(op);
});
