import { PayloadTooLargeError } from '../../../shared/platform/errors/errors.ts';
import { ScimError } from './scim-error.ts';
import { attributeName, parseScimFilter, type ScimFilter } from './scim-filter.ts';

/** Names of attributes are compared case-insensitively (RFC 7643, section 2.1). */

export type JsonObject = Readonly<Record<string, unknown>>;

const maxOperations = 1_000;

export interface PatchOperation {
  readonly op: 'add' | 'replace' | 'remove';
  /** Null: the value is an object with attributes. */
  readonly path: string | null;
  readonly value: unknown;
}

/** Where a path leads, for example `emails[type eq "work"].value`. */
export interface PatchTarget {
  /** In lower case, such as `emails.value`. */
  readonly attribute: string;
  readonly filter: ScimFilter | null;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function memberOf(object: JsonObject, name: string): unknown {
  if (Object.hasOwn(object, name)) return object[name];
  const lower = name.toLowerCase();
  return Object.entries(object).find(([key]) => key.toLowerCase() === lower)?.[1];
}

/** Null and missing are empty. Throws ScimError. */
export function textOf(value: unknown, attribute: string, maxChars = 256): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw invalidValue(attribute, 'is not text');
  const text = value.trim();
  if (text.length > maxChars) throw invalidValue(attribute, `has more than ${maxChars} characters`);
  if (!text.isWellFormed() || /\p{Cc}/u.test(text))
    throw invalidValue(attribute, 'has characters that cannot be stored');
  return text;
}

/** Accepts text in upper or lower case, too. Throws ScimError. */
export function booleanOf(value: unknown, attribute: string): boolean {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'string' && /^(?:true|false)$/i.test(value)) return value.toLowerCase() === 'true';
  throw invalidValue(attribute, 'is neither true nor false');
}

/** An operation without a path is split by attribute. Throws ScimError, and PayloadTooLargeError for too many. */
export function operationsOf(body: JsonObject): (PatchOperation & { readonly path: string })[] {
  const operations = memberOf(body, 'Operations');
  if (!Array.isArray(operations) || operations.length === 0)
    throw new ScimError('invalidSyntax', 'Operations is missing, or not a list with operations');
  if (operations.length > maxOperations)
    throw new PayloadTooLargeError(
      `The body has ${operations.length} operations; this call accepts at most ${maxOperations}`,
    );
  return operations.flatMap((each: unknown) => takeApart(toOperation(each)));
}

function toOperation(operation: unknown): PatchOperation {
  if (!isObject(operation)) throw new ScimError('invalidSyntax', 'An operation is not an object');
  const word = memberOf(operation, 'op');
  const op = (['add', 'replace', 'remove'] as const).find(
    (each) => typeof word === 'string' && each === word.toLowerCase(),
  );
  if (op === undefined) throw new ScimError('invalidSyntax', 'op is not one of add, replace and remove');
  const path = memberOf(operation, 'path') ?? null;
  if (path !== null && typeof path !== 'string') throw new ScimError('invalidPath', 'path is not text');
  return { op, path: path === '' ? null : path, value: memberOf(operation, 'value') };
}

function takeApart({ op, path, value }: PatchOperation): (PatchOperation & { readonly path: string })[] {
  if (path !== null) return [{ op, path, value }];
  if (op === 'remove') throw new ScimError('noTarget', 'remove needs a path');
  if (!isObject(value)) throw new ScimError('invalidValue', 'Without a path, value is an object with attributes');
  return Object.entries(value).map(([key, each]) => ({ op, path: key, value: each }));
}

/** Null for attributes of schemas that are not kept. Throws ScimError. */
export function targetOf(path: string): PatchTarget | null {
  const name = attributeName(path.slice(0, 1_000));
  if (name.startsWith('urn:')) return null;
  const own = path.slice(path.length - name.length);
  const match = /^([\w$-]+)(?:\[(.*)\])?((?:\.[\w$-]+)?)$/s.exec(path.length > 1_000 ? '' : own);
  if (!match) throw new ScimError('invalidPath', `The path ${JSON.stringify(path.slice(0, 60))} is not valid`);
  const [, attribute = '', selection, sub = ''] = match;
  return {
    attribute: `${attribute}${sub}`.toLowerCase(),
    filter: selection === undefined ? null : parseScimFilter(selection),
  };
}

export function invalidValue(attribute: string, why: string): ScimError {
  return new ScimError('invalidValue', `${attribute} ${why}`);
}
