import { describe, expect, test } from '@jest/globals';
import { isRedacted, joinPath, listJsonRows } from './json-tree.ts';

const state = { name: 'web', tags: { 'a.b': 'x', token: { '[secret]': true } }, ports: [80, null], empty: {} };

describe('a JSON value as a tree', () => {
  test('has a line for each property, with its path', () => {
    const lines = listJsonRows(state, () => true).map(({ path, kind, value, depth }) => [path, kind, value, depth]);
    expect(lines).toEqual([
      ['', 'object', null, 0],
      ['name', 'string', 'web', 1],
      ['tags', 'object', null, 1],
      ['tags["a.b"]', 'string', 'x', 2],
      ['tags.token', 'secret', '[secret]', 2],
      ['ports', 'array', null, 1],
      ['ports[0]', 'number', '80', 2],
      ['ports[1]', 'null', 'null', 2],
      ['empty', 'object', null, 1],
    ]);
  });

  test('does not walk collapsed values', () => {
    const touchy = {
      open: {
        closed: new Proxy(
          { a: 1 },
          {
            get: () => {
              throw new Error('read');
            },
          },
        ),
      },
    };
    const rows = listJsonRows(touchy, (_, depth) => depth < 1);
    expect(rows.map(({ path, isOpen, childCount }) => [path, isOpen, childCount])).toEqual([
      ['', true, 1],
      ['open', false, 1],
    ]);
  });

  test('ends at the maximum number of lines', () => {
    expect(
      listJsonRows(
        Array.from({ length: 50 }, (_, at) => at),
        () => true,
        20,
      ),
    ).toHaveLength(20);
  });

  test('never shows the other properties of a secret', () => {
    const ciphertext = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', ciphertext: 'v1:x' };
    expect(isRedacted(ciphertext)).toBe(true);
    expect(isRedacted('[secret]')).toBe(true);
    expect(isRedacted({ value: '[secret]' })).toBe(false);
    expect(JSON.stringify(listJsonRows({ a: ciphertext }, () => true))).not.toContain('v1:x');
  });

  test('quotes keys that are no names', () => {
    expect(joinPath('', '__proto__')).toBe('__proto__');
    expect(joinPath('a', '')).toBe('a[""]');
    expect(joinPath('a', 'x"y')).toBe('a["x\\"y"]');
  });
});
