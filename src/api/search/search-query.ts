import { SearchQueryError } from '../platform/http/search-query-error.ts';
import { parseVersionRange, type VersionRange } from './version-range.ts';

/** Values may contain `*`. Fields of stacks are evaluated before resources are scanned. */
export type ResourceField = 'type' | 'name' | 'urn' | 'parent' | 'provider';
export type FlagField = 'protect' | 'custom' | 'external' | 'deleted';

/** A condition on a resource or on its stack. */
export type Condition =
  /** Words or beginnings of words in type and name. All but the last are whole words. */
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'text'; readonly field: ResourceField; readonly pattern: string }
  | { readonly kind: 'flag'; readonly field: FlagField; readonly value: boolean }
  /** The version of the provider; null: any known version. */
  | { readonly kind: 'version'; readonly range: VersionRange | null }
  /** The last change is at least this old, or younger. */
  | { readonly kind: 'changed'; readonly isOlder: boolean; readonly seconds: number }
  /** Missing parts match anything. */
  | { readonly kind: 'stack'; readonly organization: string; readonly project: string; readonly stack: string }
  | { readonly kind: 'tag'; readonly name: string; readonly value: string | null };

/** Positions are in characters from 0. */
export interface Term {
  readonly condition: Condition;
  readonly isNegated: boolean;
  readonly start: number;
  readonly end: number;
}

const maxChars = 1_000;
const maxTerms = 20;
const maxWordChars = 500;

const aliases: Readonly<Record<string, string>> = {
  protected: 'protect',
  package: 'provider',
  modified: 'changed',
  org: 'organization',
};
const fieldNames = [
  ...['type', 'name', 'provider', 'version', 'stack', 'project', 'organization', 'tag', 'protect', 'changed', 'parent'],
  ...['urn', 'custom', 'external', 'deleted'],
];

/** Optional minus, optional field, and a value that may be quoted. */
const termPattern = /\s*(?:(-?)(?:([A-Za-z][\w.]*):)?(?:"((?:[^"\\]|\\.)*)"|([^\s"]*)))/y;

/** Characters that separate words, as in the index: all ASCII characters except letters and digits. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the same characters as in the database.
const separators = /[\x01-\x2f\x3a-\x60\x7b-\x7f]+/;

/** All terms must match, for example `type:aws:rds/* -protect:true version:<6 orders`. Throws SearchQueryError. */
export function parseSearchQuery(text: string): Term[] {
  if (text.length > maxChars)
    throw new SearchQueryError(`it has more than ${maxChars} characters`, maxChars, text.length);
  const terms: Term[] = [];
  const end = text.trimEnd().length;
  let at = 0;
  while (at < end) {
    termPattern.lastIndex = at;
    const match = termPattern.exec(text);
    const start = at + (/^\s*/.exec(text.slice(at))?.[0].length ?? 0);
    const next = match === null ? at : termPattern.lastIndex;
    if (match === null || next <= start || (next < end && !/\s/.test(text[next] as string)))
      throw new SearchQueryError('a quotation mark is not closed, or is within a word', quoteAt(text, start), end);
    if (terms.length === maxTerms) throw new SearchQueryError(`there are more than ${maxTerms} terms`, start, end);
    terms.push(toTerm(match, start, next));
    at = next;
  }
  return terms;
}

function quoteAt(text: string, start: number): number {
  const at = text.indexOf('"', start);
  return at < 0 ? start : at;
}

function toTerm([, minus = '', field, quoted, bare = '']: RegExpExecArray, start: number, end: number): Term {
  const value = quoted === undefined ? bare : quoted.replace(/\\(.)/gs, '$1');
  const valueStart = start + minus.length + (field === undefined ? 0 : field.length + 1);
  const fail = (why: string, from = valueStart): never => {
    throw new SearchQueryError(why, from, end);
  };
  if (value.includes('\0')) fail('it has a NUL character');
  const position = { isNegated: minus === '-', start, end };
  if (field === undefined) {
    if (value === '') fail(minus === '-' ? 'something must follow the minus' : 'the quotation marks are empty', start);
    return { ...position, condition: textCondition(value, fail) };
  }
  const name = aliases[field.toLowerCase()] ?? field.toLowerCase();
  if (!fieldNames.includes(name)) {
    const hint = `there is no field ${JSON.stringify(field)}. Fields are ${fieldNames.join(', ')}. Put text with a colon in quotation marks`;
    fail(hint, start + minus.length);
  }
  if (value === '') fail(`${name}: needs a value`, start);
  return { ...position, condition: toCondition(name, value, fail) };
}

type Fail = (why: string) => never;

function textCondition(value: string, fail: Fail): Condition {
  const words = value
    .replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    .split(separators)
    .filter((word) => word !== '')
    .map((word) => [...word].slice(0, maxWordChars).join(''));
  if (words.length === 0) fail('a word needs letters or digits; values with * need a field, such as name:*db*');
  if (value.includes('*')) fail('words match by prefix; values with * need a field, such as name:*db*');
  return { kind: 'words', words };
}

function toCondition(name: string, value: string, fail: Fail): Condition {
  switch (name) {
    case 'type':
    case 'name':
    case 'urn':
    case 'parent':
    case 'provider':
      return { kind: 'text', field: name, pattern: value };
    case 'protect':
    case 'custom':
    case 'external':
    case 'deleted':
      if (!/^(true|false|yes|no)$/i.test(value)) fail(`${name}: must be true or false`);
      return { kind: 'flag', field: name, value: /^(true|yes)$/i.test(value) };
    case 'version':
      return toVersion(value, fail);
    case 'changed':
      return toAge(value, fail);
    case 'stack':
      return toStack(value, fail);
    case 'project':
      return { kind: 'stack', organization: '*', project: value, stack: '*' };
    case 'organization':
      return { kind: 'stack', organization: value, project: '*', stack: '*' };
    default:
      return toTag(value, fail);
  }
}

function toVersion(value: string, fail: Fail): Condition {
  if (value === '*') return { kind: 'version', range: null };
  const range = parseVersionRange(value);
  return {
    kind: 'version',
    range: range ?? fail('version: must be a version or a range, such as 6, 6.1.2, <6, >=6.1 or 6.1..6.4'),
  };
}

const unitSeconds = { m: 60, h: 3_600, d: 86_400, w: 7 * 86_400, y: 365 * 86_400 } as const;
const maxAgeSeconds = 200 * unitSeconds.y;

/** A lower or upper bound. */
export interface AgeLimit {
  readonly isOlder: boolean;
  readonly seconds: number;
}

/** `<7d` and `7d`: within the last seven days. Returns the text of the error if the age is invalid. */
export function parseAge(value: string): AgeLimit | string {
  const [, operator = '', count = '', unit = ''] = /^(<=?|>=?|)(\d{1,6})([mhdwy])$/.exec(value) ?? [];
  if (count === '') return 'must be an age in minutes, hours, days, weeks or years, such as <7d or >1y';
  const seconds = Number(count) * unitSeconds[unit as keyof typeof unitSeconds];
  return seconds > maxAgeSeconds ? 'is too long ago' : { isOlder: operator.startsWith('>'), seconds };
}

function toAge(value: string, fail: Fail): Condition {
  const age = parseAge(value);
  return typeof age === 'string' ? fail(`changed: ${age}`) : { kind: 'changed', ...age };
}

function toStack(value: string, fail: Fail): Condition {
  const parts = value.split('/');
  if (parts.length > 3 || parts.includes('')) fail('stack: must be stack, project/stack or organization/project/stack');
  const [stack = '*', project = '*', organization = '*'] = parts.reverse();
  return { kind: 'stack', organization, project, stack };
}

function toTag(value: string, fail: Fail): Condition {
  const at = value.indexOf('=');
  if (at === 0) fail('tag: must be name or name=value');
  return at < 0
    ? { kind: 'tag', name: value, value: null }
    : { kind: 'tag', name: value.slice(0, at), value: value.slice(at + 1) };
}
