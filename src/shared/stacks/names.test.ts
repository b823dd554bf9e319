import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { anyCodePoint } from '../../../testkit/any-code-point.ts';
import { InvalidRequestError } from '../platform/errors/errors.ts';
import {
  assertOrganizationName,
  assertProjectName,
  assertStackName,
  assertStackRef,
  formatStackRef,
  isLogin,
  isOrganizationName,
  isSegmentName,
  parseQualifiedName,
} from './names.ts';

const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const wordOf = (alphabet: string, min: number, max: number) =>
  fc.array(fc.constantFrom(...alphabet), { minLength: min, maxLength: max }).map((units) => units.join(''));
const segment = wordOf(`${letters}-_.`, 1, 100).filter((name) => name !== '.' && name !== '..');
const organization = fc
  .tuple(wordOf(letters, 1, 1), wordOf(`${letters}-_`, 0, 38), wordOf(letters, 1, 1))
  .map((parts) => parts.join(''));
const anything = fc.oneof(
  fc.string({ unit: anyCodePoint, maxLength: 120 }),
  fc
    .tuple(wordOf(`${letters}-_.`, 0, 101), fc.string({ unit: anyCodePoint, maxLength: 2 }))
    .map((parts) => parts.join('')),
  fc.constantFrom(
    '',
    '.',
    '..',
    '...',
    'a\n',
    '\na',
    'a b',
    'a/b',
    'é',
    'ａ',
    '__proto__',
    'a\0',
    'x'.repeat(101),
    '-',
    '_',
  ),
);

/** The same rules without a regular expression. */
const consistsOf = (alphabet: string, name: string) => [...name].every((unit) => alphabet.includes(unit));
const mayBeSegment = (name: string) =>
  name.length >= 1 && name.length <= 100 && consistsOf(`${letters}-_.`, name) && name !== '.' && name !== '..';
const mayBeOrganization = (name: string) =>
  name.length >= 1 &&
  name.length <= 40 &&
  consistsOf(`${letters}-_`, name) &&
  consistsOf(letters, name.slice(0, 1)) &&
  consistsOf(letters, name.slice(-1));

describe('names', () => {
  test('of projects, stacks and organizations are accepted by their rules', () => {
    fc.assert(
      fc.property(fc.oneof(anything, segment, organization), (name) => {
        expect(isSegmentName(name)).toBe(mayBeSegment(name));
        expect(isOrganizationName(name)).toBe(mayBeOrganization(name));
        if (isLogin(name)) expect(name).toMatch(/^[\w.@-]+$/);
      }),
      { numRuns: 2_000 },
    );
  });

  test('that are rejected appear in the error, truncated if long', () => {
    fc.assert(
      fc.property(anything, (name) => {
        for (const [isValid, check] of [
          [mayBeSegment(name), () => assertProjectName(name)],
          [mayBeSegment(name), () => assertStackName(name)],
          [mayBeOrganization(name), () => assertOrganizationName(name)],
        ] as const) {
          if (isValid) expect(check).not.toThrow();
          else {
            expect(check).toThrow(InvalidRequestError);
            expect(check).toThrow(/is not valid/);
          }
        }
      }),
    );
    expect(() => assertStackName('x'.repeat(100_000))).toThrow(/^.{0,300}$/);
  });

  test('format and parse are each other’s inverse', () => {
    fc.assert(
      fc.property(organization, segment, segment, (org, project, stack) => {
        const ref = { organization: org, project, stack };
        expect(() => assertStackRef(ref)).not.toThrow();
        expect(parseQualifiedName(formatStackRef(ref))).toEqual(ref);
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(segment, anything), { maxLength: 5 }), (parts) => {
        const text = parts.join('/');
        const parsed = parseQualifiedName(text);
        if (parsed) expect(formatStackRef(parsed)).toBe(text);
        else {
          const [org = '', project = '', stack = '', ...rest] = text.split('/');
          expect(mayBeOrganization(org) && mayBeSegment(project) && mayBeSegment(stack) && rest.length === 0).toBe(
            false,
          );
        }
      }),
    );
  });
});
