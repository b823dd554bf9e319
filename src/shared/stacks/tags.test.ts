import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { anyCodePoint } from '../../../testkit/any-code-point.ts';
import { InvalidRequestError } from '../platform/errors/errors.ts';
import { parseTags, readTags, tagsOfRequest } from './tags.ts';

const name = fc.oneof(
  fc.stringMatching(/^[a-zA-Z0-9_.:-]{1,40}$/),
  fc.constantFrom('__proto__', 'constructor', 'tags', 'toString'),
);
const value = fc.string({ unit: anyCodePoint, maxLength: 80 }).map((text) => text.toWellFormed().replaceAll('\0', ''));
const valid = fc.array(
  fc.tuple(
    name,
    value.filter((text) => Buffer.byteLength(text) <= 256),
  ),
  { maxLength: 20 },
);

/** As JSON.parse does: names such as `__proto__` are own properties. */
function objectOf(entries: readonly (readonly [string, unknown])[]): object {
  return JSON.parse(
    `{${entries.map(([key, text]) => `${JSON.stringify(key)}:${JSON.stringify(text)}`).join(',')}}`,
  ) as object;
}

describe('tags', () => {
  test('that follow the rules keep their names, values and order', () => {
    fc.assert(
      fc.property(valid, (entries) => {
        const sent = objectOf(entries);
        const tags = parseTags(sent);
        expect(Object.entries(tags)).toEqual(Object.entries(sent));
        expect(Object.getPrototypeOf(tags)).toBeNull();
        const read = readTags(JSON.stringify(tags));
        expect(Object.entries(read)).toEqual(Object.entries(sent));
        expect(Object.getPrototypeOf(read)).toBeNull();
        expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
      }),
    );
  });

  test('are read the same from both request forms', () => {
    fc.assert(
      fc.property(valid, (entries) => {
        const sent = objectOf(entries);
        expect(Object.entries(tagsOfRequest({ tags: sent }))).toEqual(Object.entries(sent));
        expect(Object.entries(tagsOfRequest(sent))).toEqual(Object.entries(sent));
      }),
    );
  });

  test('that break a rule are rejected', () => {
    const broken = fc.oneof(
      fc.tuple(
        fc
          .string({ unit: anyCodePoint })
          .filter((text) => !/^[a-zA-Z0-9_.:-]{1,40}$/.test(text) || text.endsWith('\n')),
        value,
      ),
      fc.tuple(name, fc.string({ minLength: 257, maxLength: 300 })),
      fc.tuple(name, fc.constantFrom('a\0', '\ud800', 'x\udc00', '€'.repeat(86))),
      fc.tuple(name, fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.array(fc.string()), fc.object())),
    );
    fc.assert(
      fc.property(valid, broken, (entries, fault) => {
        expect(() => parseTags(objectOf([...entries, fault]))).toThrow(InvalidRequestError);
      }),
    );
    for (const other of [null, undefined, [], 'a', 1, true])
      expect(() => parseTags(other)).toThrow(InvalidRequestError);
  });
});
