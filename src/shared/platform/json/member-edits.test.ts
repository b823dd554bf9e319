import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { editMembers, listMembers, type MemberEdit } from './member-edits.ts';

function edit(text: string, edits: Record<string, string | null>): string {
  const functions = Object.entries(edits).map(([name, value]): [string, MemberEdit] => [
    name,
    () => (value === null ? null : Buffer.from(value)),
  ]);
  return editMembers(Buffer.from(text), new Map(functions)).toString('utf8');
}

describe('editMembers', () => {
  test.each([
    ['{ "a" : 1.0,\n "b":2 }', { a: '3' }, '{ "a" : 3,\n "b":2 }'],
    ['{ "a" : 1.0,\n "b":2 }', { a: null }, '{ "b":2 }'],
    ['{ "a" : 1.0,\n "b":2 }', { b: null }, '{ "a" : 1.0 }'],
    ['{ "a" : 1.0,\n "b":2 }', { a: null, b: null }, '{ }'],
    ['{ "a" : 1.0,\n "b":2 }', { a: null, b: null, c: '4' }, '{"c":4 }'],
    ['{ "a" : 1.0,\n "b":2 }', { c: '4', d: '5', e: null }, '{ "a" : 1.0,\n "b":2,"c":4,"d":5 }'],
    ['{}', { c: '4', d: '5' }, '{"c":4,"d":5}'],
    ['{"\\u0061":1,"b":{"a":1}}', { a: '3' }, '{"\\u0061":3,"b":{"a":1}}'],
    ['{"a":1,"b":2,"a":3}', { a: '4' }, '{"b":2,"a":4}'],
    ['{"a":1,"b":2,"a":3}', { a: null }, '{"b":2}'],
    ['{"a\\"":1,"b,":"},{","c":[]}', { 'b,': null }, '{"a\\"":1,"c":[]}'],
  ])('%s with %j is %s', (text, edits, expected) => {
    expect(edit(text, edits)).toBe(expected);
  });

  test('passes each edit the value so far', () => {
    const seen: (string | undefined)[] = [];
    const record: MemberEdit = (value) => {
      seen.push(value?.toString('utf8'));
      return value;
    };
    const text = Buffer.from('{"a":[1, 2],"b":0}');
    expect(
      editMembers(
        text,
        new Map([
          ['a', record],
          ['c', record],
        ]),
      ).equals(text),
    ).toBe(true);
    expect(seen).toEqual(['[1, 2]', undefined]);
  });

  test('has the same effect as the edit of the parsed object', () => {
    const names = fc.constantFrom('a', 'b', '__proto__', 'é"\\', 'urn');
    const object = fc.uniqueArray(fc.tuple(names, fc.jsonValue()), { selector: ([name]) => name });
    const edits = fc.uniqueArray(fc.tuple(names, fc.option(fc.jsonValue())), { selector: ([name]) => name });
    fc.assert(
      fc.property(object, edits, fc.nat(3), (members, changes, indent) => {
        const text = JSON.stringify(Object.fromEntries(members), null, indent);
        const functions = changes.map(([name, value]): [string, MemberEdit] => [
          name,
          () => (value === null ? null : Buffer.from(JSON.stringify(value))),
        ]);
        const expected = new Map(Object.entries(JSON.parse(text)));
        for (const [name, value] of changes) {
          if (value === null) expected.delete(name);
          else expected.set(name, JSON.parse(JSON.stringify(value)));
        }
        const edited = editMembers(Buffer.from(text), new Map(functions)).toString('utf8');
        expect(new Map(Object.entries(JSON.parse(edited)))).toEqual(expected);
      }),
    );
  });
});

test('listMembers finds names and values in white space', () => {
  const text = Buffer.from(' { "a,\\"" : [1] , "b":"}" } ');
  const found = listMembers(text).map(({ name, nameStart, valueStart, valueEnd, kind }) => [
    name,
    text.toString('utf8', nameStart, valueEnd),
    text.toString('utf8', valueStart, valueEnd),
    kind,
  ]);
  expect(found).toEqual([
    ['a,"', '"a,\\"" : [1]', '[1]', 'array'],
    ['b', '"b":"}"', '"}"', 'string'],
  ]);
});
