import { ScimError } from './scim-error.ts';

const operators = ['eq', 'ne', 'co', 'sw', 'ew', 'pr'] as const;
export type ScimOperator = (typeof operators)[number];
export type ScimValue = string | number | boolean | null;

/** RFC 7644. Attributes are in lower case, without schema and without the selection of a value. */
export type ScimFilter =
  | { readonly kind: 'and'; readonly terms: readonly ScimFilter[] }
  | { readonly kind: 'or'; readonly terms: readonly ScimFilter[] }
  | { readonly kind: 'not'; readonly term: ScimFilter }
  | {
      readonly kind: 'compare';
      readonly attribute: string;
      readonly operator: ScimOperator;
      readonly value: ScimValue;
    };

const maxChars = 4_096;
const maxDepth = 10;
const maxTerms = 50;

/** A bracket, quoted text, or a word: an attribute may select values (`emails[type eq "work"].value`). */
const tokenPattern =
  /\s*(?:([()])|("(?:[^"\\]|\\.)*")|([^\s()"[\]]+(?:\[(?:[^"\]]|"(?:[^"\\]|\\.)*")*\][^\s()"[\]]*)?))/y;

/** Throws ScimError. */
export function parseScimFilter(text: string): ScimFilter {
  return new FilterParser(text).parse();
}

/** The name in lower case, without the core schema that may precede it. */
export function attributeName(path: string): string {
  return path.replace(/^urn:ietf:params:scim:schemas:core:2\.0:(?:User|Group):/i, '').toLowerCase();
}

class FilterParser {
  readonly #tokens: readonly string[];
  #at = 0;
  #terms = 0;

  constructor(text: string) {
    if (text.length > maxChars) throw invalid(`it has more than ${maxChars} characters`);
    this.#tokens = tokensOf(text);
  }

  parse(): ScimFilter {
    const filter = this.#alternatives('or', 0);
    if (this.#at < this.#tokens.length) throw invalid(`${quote(this.#tokens[this.#at])} is not expected`);
    return filter;
  }

  #alternatives(kind: 'and' | 'or', depth: number): ScimFilter {
    const next = (): ScimFilter => (kind === 'or' ? this.#alternatives('and', depth) : this.#term(depth));
    const first = next();
    const terms = [first];
    while (this.#peek() === kind) {
      this.#at++;
      terms.push(next());
    }
    return terms.length === 1 ? first : { kind, terms };
  }

  #term(depth: number): ScimFilter {
    if (depth > maxDepth) throw invalid(`it is nested more than ${maxDepth} times`);
    if (++this.#terms > maxTerms) throw invalid(`it has more than ${maxTerms} terms`);
    const token = this.#take();
    if (token === '(') return this.#group(depth);
    if (token.toLowerCase() === 'not') {
      if (this.#take() !== '(') throw invalid('"not" needs brackets');
      return { kind: 'not', term: this.#group(depth) };
    }
    if (token === ')' || token.startsWith('"')) throw invalid(`${quote(token)} is not an attribute`);
    if (token.endsWith(']')) return selection(token);
    const word = this.#take().toLowerCase();
    const operator = operators.find((each) => each === word);
    if (operator === undefined) throw invalid(`operator ${quote(word)} is not supported: ${operators.join(', ')}`);
    const value = operator === 'pr' ? null : toValue(this.#take());
    return { kind: 'compare', attribute: attributeName(token.replace(/\[.*\]/s, '')), operator, value };
  }

  #group(depth: number): ScimFilter {
    const filter = this.#alternatives('or', depth + 1);
    if (this.#take() !== ')') throw invalid('a bracket is not closed');
    return filter;
  }

  #peek(): string | undefined {
    return this.#tokens[this.#at]?.toLowerCase();
  }

  #take(): string {
    const token = this.#tokens[this.#at++];
    if (token === undefined) throw invalid('it ends too early');
    return token;
  }
}

/** `members[value eq "x"]` is the filter in the brackets, about attributes of `members`. */
function selection(token: string): ScimFilter {
  const at = token.indexOf('[');
  const prefix = attributeName(token.slice(0, at));
  const within = (filter: ScimFilter): ScimFilter => {
    if (filter.kind === 'compare') return { ...filter, attribute: `${prefix}.${filter.attribute}` };
    if (filter.kind === 'not') return { kind: 'not', term: within(filter.term) };
    return { ...filter, terms: filter.terms.map(within) };
  };
  return within(parseScimFilter(token.slice(at + 1, -1)));
}

function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  const end = text.trimEnd().length;
  tokenPattern.lastIndex = 0;
  while (tokenPattern.lastIndex < end) {
    const from = tokenPattern.lastIndex;
    const match = tokenPattern.exec(text);
    if (!match) throw invalid(`${quote(text.slice(from, from + 20))} cannot be read`);
    tokens.push((match[1] ?? match[2] ?? match[3]) as string);
  }
  return tokens;
}

function toValue(token: string): ScimValue {
  try {
    const value: unknown = JSON.parse(/^(?:true|false|null)$/i.test(token) ? token.toLowerCase() : token);
    if (value === null || typeof value !== 'object') return value as ScimValue;
  } catch {}
  throw invalid(`${quote(token)} is not a value`);
}

function invalid(why: string): ScimError {
  return new ScimError('invalidFilter', `The filter is not valid: ${why}`);
}

function quote(token: string | undefined): string {
  return JSON.stringify((token ?? '').slice(0, 60));
}
