import { isLogin } from '../../../shared/stacks/names.ts';
import {
  booleanOf,
  invalidValue,
  isObject,
  type JsonObject,
  memberOf,
  operationsOf,
  type PatchOperation,
  targetOf,
  textOf,
} from './scim-bodies.ts';
import { ScimError } from './scim-error.ts';
import type { ScimFilter } from './scim-filter.ts';

/** All other attributes are accepted and dropped. */
export interface UserAttributes {
  readonly userName: string;
  readonly externalId: string | null;
  readonly displayName: string;
  readonly givenName: string;
  readonly familyName: string;
  /** The primary address, or the address of type work. */
  readonly email: string;
  readonly active: boolean;
}

type Change = Partial<UserAttributes>;

const maxEmailChars = 320;

/** `active` applies if the body does not contain it. Throws ScimError. */
export function readUser(body: JsonObject, active: boolean): UserAttributes {
  const name = memberOf(body, 'name') ?? {};
  if (!isObject(name)) throw invalidValue('name', 'is not an object');
  const givenName = textOf(memberOf(name, 'givenName'), 'name.givenName');
  const familyName = textOf(memberOf(name, 'familyName'), 'name.familyName');
  const displayName =
    textOf(memberOf(body, 'displayName'), 'displayName') || textOf(memberOf(name, 'formatted'), 'name.formatted');
  const given = memberOf(body, 'active');
  return checked({
    userName: textOf(memberOf(body, 'userName'), 'userName'),
    externalId: externalIdOf(memberOf(body, 'externalId')),
    displayName: displayName || [givenName, familyName].filter((part) => part !== '').join(' '),
    givenName,
    familyName,
    email: pickEmail(memberOf(body, 'emails'))?.value ?? '',
    active: given === undefined || given === null ? active : booleanOf(given, 'active'),
  });
}

/** The operations apply in order. Throws ScimError. */
export function patchUser(user: UserAttributes, body: JsonObject): UserAttributes {
  let patched = user;
  for (const operation of operationsOf(body)) patched = { ...patched, ...changeOf(patched, operation) };
  return checked(patched);
}

export function externalIdOf(value: unknown): string | null {
  return textOf(value, 'externalId') || null;
}

function checked(user: UserAttributes): UserAttributes {
  if (!isLogin(user.userName))
    throw invalidValue(
      'userName',
      'is not a login: 1 to 100 letters, digits, and _.@-, beginning with a letter or digit',
    );
  return user;
}

function changeOf(user: UserAttributes, operation: PatchOperation & { readonly path: string }): Change {
  const { op, path } = operation;
  const target = targetOf(path);
  if (!target) return {};
  const value = op === 'remove' ? undefined : operation.value;
  const { attribute, filter } = target;
  switch (attribute) {
    case 'username':
      return { userName: textOf(value, 'userName') };
    case 'externalid':
      return { externalId: externalIdOf(value) };
    case 'displayname':
      return { displayName: textOf(value, 'displayName') };
    case 'active':
      if (op === 'remove') throw new ScimError('mutability', 'active cannot be removed');
      return { active: booleanOf(value, 'active') };
    case 'name':
      return nameChange(value);
    case 'name.givenname':
      return { givenName: textOf(value, attribute) };
    case 'name.familyname':
      return { familyName: textOf(value, attribute) };
    case 'emails':
      return emailsChange(user, { op, value, filter });
    case 'emails.value':
      return filter === null || selects(filter, user) ? { email: textOf(value, attribute, maxEmailChars) } : {};
    default:
      return {};
  }
}

function nameChange(value: unknown): Change {
  if (value === undefined || value === null) return { givenName: '', familyName: '' };
  if (!isObject(value)) throw invalidValue('name', 'is not an object');
  const change: { givenName?: string; familyName?: string } = {};
  for (const name of ['givenName', 'familyName'] as const) {
    const part = memberOf(value, name);
    if (part !== undefined) change[name] = textOf(part, `name.${name}`);
  }
  return change;
}

function emailsChange(
  user: UserAttributes,
  {
    op,
    value,
    filter,
  }: { readonly op: PatchOperation['op']; readonly value: unknown; readonly filter: ScimFilter | null },
): Change {
  if (filter !== null && !selects(filter, user)) return {};
  const email = pickEmail(value);
  if (!email) return op === 'add' ? {} : { email: '' };
  // Only one address is kept: an added address is dropped unless it takes the place of the current one.
  return op === 'add' && user.email !== '' && !email.isMain ? {} : { email: email.value };
}

function selects(filter: ScimFilter, user: UserAttributes): boolean {
  if (filter.kind === 'and') return filter.terms.every((term) => selects(term, user));
  if (filter.kind === 'or') return filter.terms.some((term) => selects(term, user));
  if (filter.kind === 'not') return !selects(filter.term, user);
  const { attribute, operator, value } = filter;
  if (operator === 'pr') return true;
  const text = String(value).toLowerCase();
  const own = { type: 'work', primary: 'true', value: user.email.toLowerCase() }[attribute];
  return operator === 'ne' ? own !== text : own === text;
}

/** The address to keep from a list, an object or a text. */
function pickEmail(value: unknown): { readonly value: string; readonly isMain: boolean } | null {
  const entries = (Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]).map(
    (entry: unknown) => (isObject(entry) ? entry : { value: entry }),
  );
  const isPrimary = (entry: JsonObject): boolean => String(memberOf(entry, 'primary')).toLowerCase() === 'true';
  const isWork = (entry: JsonObject): boolean => String(memberOf(entry, 'type')).toLowerCase() === 'work';
  const picked = entries.find(isPrimary) ?? entries.find(isWork) ?? entries[0];
  if (!picked) return null;
  const email = textOf(memberOf(picked, 'value'), 'emails.value', maxEmailChars);
  return { value: email, isMain: isPrimary(picked) || isWork(picked) };
}
