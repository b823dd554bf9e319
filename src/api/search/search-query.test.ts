import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { SearchQueryError } from '../platform/http/search-query-error.ts';
import { parseSearchQuery } from './search-query.ts';

const conditions = (text: string) =>
  parseSearchQuery(text).map(({ condition, isNegated }) => ({ ...condition, isNegated }));

function refusal(text: string): SearchQueryError {
  try {
    parseSearchQuery(text);
  } catch (error) {
    if (error instanceof SearchQueryError) return error;
    throw error;
  }
  throw new Error(`${text} was read`);
}

describe('queries', () => {
  test('are terms with fields, negation, wildcards and ranges', () => {
    expect(conditions('type:aws:rds/* -protect:true version:<6 Orders-DB')).toEqual([
      { kind: 'text', field: 'type', pattern: 'aws:rds/*', isNegated: false },
      { kind: 'flag', field: 'protect', value: true, isNegated: true },
      expect.objectContaining({ kind: 'version', isNegated: false }),
      { kind: 'words', words: ['orders', 'db'], isNegated: false },
    ]);
    expect(conditions('stack:acme/web/* project:web stack:prod -tag:env=prod tag:team')).toEqual([
      { kind: 'stack', organization: 'acme', project: 'web', stack: '*', isNegated: false },
      { kind: 'stack', organization: '*', project: 'web', stack: '*', isNegated: false },
      { kind: 'stack', organization: '*', project: '*', stack: 'prod', isNegated: false },
      { kind: 'tag', name: 'env', value: 'prod', isNegated: true },
      { kind: 'tag', name: 'team', value: null, isNegated: false },
    ]);
    expect(conditions('changed:>30d changed:<2h changed:1w')).toEqual([
      { kind: 'changed', isOlder: true, seconds: 2_592_000, isNegated: false },
      { kind: 'changed', isOlder: false, seconds: 7_200, isNegated: false },
      { kind: 'changed', isOlder: false, seconds: 604_800, isNegated: false },
    ]);
  });

  test('may have quoted values, and other names of fields', () => {
    expect(conditions('name:"a \\"b\\" c" -"aws:s3" PROTECTED:no package:aws')).toEqual([
      { kind: 'text', field: 'name', pattern: 'a "b" c', isNegated: false },
      { kind: 'words', words: ['aws', 's3'], isNegated: true },
      { kind: 'flag', field: 'protect', value: false, isNegated: false },
      { kind: 'text', field: 'provider', pattern: 'aws', isNegated: false },
    ]);
    expect(parseSearchQuery('  ')).toEqual([]);
  });

  test('have the position of each term', () => {
    expect(parseSearchQuery('  name:a   -b ').map(({ end, start }) => [start, end])).toEqual([
      [2, 8],
      [11, 13],
    ]);
  });

  test.each([
    ['a naem:db', 2, 9, /no field "naem".*type, name/],
    ['a -naem:db', 3, 10, /no field/],
    ['name:', 0, 5, /name: needs a value/],
    ['x version:six', 10, 13, /version or a range/],
    ['changed:>30', 8, 11, /age/],
    ['changed:>999999y', 8, 16, /too long/],
    ['protect:maybe', 8, 13, /true or false/],
    ['stack:a/b/c/d', 6, 13, /organization\/project\/stack/],
    ['stack:a//b', 6, 10, /organization\/project\/stack/],
    ['tag:=x', 4, 6, /name=value/],
    ['a "b', 2, 4, /quotation mark/],
    ['a b"c"', 3, 6, /quotation mark/],
    ['-', 0, 1, /follow the minus/],
    ['""', 0, 2, /empty/],
    ['db*', 0, 3, /need a field/],
    ['...', 0, 3, /letters or digits/],
    ['name:\u0000', 5, 6, /NUL/],
  ])('%j is refused, with its place', (text, start, end, why) => {
    const error = refusal(text);
    expect([error.start, error.end]).toEqual([start, end]);
    expect(error.message).toMatch(why);
  });

  test('are bounded', () => {
    expect(refusal('x '.repeat(21)).message).toMatch(/more than 20 terms/);
    expect(refusal('x'.repeat(1_001)).message).toMatch(/more than 1000 characters/);
  });

  test('of any text are parsed, or rejected with a position', () => {
    const part = fc.constantFrom(...'a-"\\:* /=<>.#é', 'name:', 'type:', 'version:', 'tag:', '6', '\u0000', '\t');
    const text = fc.array(part, { maxLength: 25 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(fc.oneof(text, fc.string()), (query) => {
        try {
          const ends = parseSearchQuery(query).flatMap(({ end, start }) => [start, end]);
          expect(ends).toEqual([...ends].sort((a, b) => a - b));
        } catch (error) {
          if (!(error instanceof SearchQueryError)) throw error;
          expect(error.start).toBeGreaterThanOrEqual(0);
          expect(error.start).toBeLessThanOrEqual(error.end);
          expect(error.end).toBeLessThanOrEqual(query.length);
        }
      }),
    );
  });

  test('match quoted values literally', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 40 }).filter((value) => !value.includes('\0')),
        (value) => {
          const quoted = `name:"${value.replace(/["\\]/g, '\\$&')}"`;
          expect(conditions(`${quoted} x`)[0]).toEqual({
            kind: 'text',
            field: 'name',
            pattern: value,
            isNegated: false,
          });
        },
      ),
    );
  });
});
