import type { TrustRequest } from '../../../shared/identity/trust/trust-policy.ts';
import { ExchangeError } from './exchange-errors.ts';

/** RFC 8693. */
export interface ExchangeRequest extends TrustRequest {
  readonly organization: string;
  readonly idToken: string;
  /** The scope as it was sent. */
  readonly scope: string;
  /** In seconds; null: the maximum of the policy. */
  readonly lifetimeSeconds: number | null;
}

export const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange';
const idTokenTypes = ['urn:ietf:params:oauth:token-type:id_token', 'urn:ietf:params:oauth:token-type:jwt'];
const requestedTypes = 'urn:pulumi:token-type:access_token:';
const audiencePattern = /^urn:pulumi:org:([a-zA-Z0-9_.-]{1,100})$/;

/** Parameters that are read; others are ignored (RFC 6749, 3.2). */
const names: ReadonlySet<string> = new Set(
  'audience expiration grant_type requested_token_type scope subject_token subject_token_type'.split(' '),
);

/** An id token with all claims of a CI system has 1 to 2 KiB. */
const maxTokenChars = 16 * 1024;
const maxSeconds = 10 * 365 * 86_400;

export function typeOfToken(kind: TrustRequest['kind']): string {
  return `${requestedTypes}${kind}`;
}

/** A form, as the CLI sends it, or JSON. Throws ExchangeError. */
export function parseExchangeRequest(body: Buffer, contentType: string): ExchangeRequest {
  const given = readParameters(body, contentType);
  const grant = required(given, 'grant_type');
  if (grant !== exchangeGrant)
    throw new ExchangeError(
      'unsupported_grant_type',
      `The grant_type must be ${exchangeGrant}; there are no refresh tokens`,
    );
  if (!idTokenTypes.includes(required(given, 'subject_token_type')))
    throw new ExchangeError('invalid_request', `The subject_token_type must be ${idTokenTypes[0]}`);
  const [, organization] = audiencePattern.exec(required(given, 'audience')) ?? [];
  if (organization === undefined)
    throw new ExchangeError('invalid_request', 'The audience must be urn:pulumi:org:<organization>');
  const idToken = required(given, 'subject_token');
  if (idToken.length > maxTokenChars)
    throw new ExchangeError('invalid_request', `The subject_token has more than ${maxTokenChars} characters`);
  const scope = given.get('scope') ?? '';
  return {
    organization,
    idToken,
    scope,
    ...asked(given.get('requested_token_type') || typeOfToken('organization'), scope),
    lifetimeSeconds: lifeOf(given.get('expiration') ?? ''),
  };
}

function asked(type: string, scope: string): TrustRequest {
  const words = scope.split(' ').filter((word) => word !== '');
  const kind = type.startsWith(requestedTypes) ? type.slice(requestedTypes.length) : '';
  if (kind === 'organization') {
    if (words.some((word) => word !== 'admin'))
      throw new ExchangeError('invalid_scope', 'The scope of an organization token must be empty or admin');
    return { kind, owner: null, admin: words.length > 0 };
  }
  if (kind !== 'team' && kind !== 'personal')
    throw new ExchangeError(
      'invalid_request',
      `The requested_token_type must be ${requestedTypes}organization, team or personal`,
    );
  const prefix = kind === 'team' ? 'team:' : 'user:';
  const [only = ''] = words;
  if (words.length !== 1 || !only.startsWith(prefix) || only.length === prefix.length)
    throw new ExchangeError('invalid_scope', `The scope of this type of token must be ${prefix}<name>`);
  return { kind, owner: only.slice(prefix.length), admin: false };
}

function lifeOf(text: string): number | null {
  if (text === '' || text === '0') return null;
  const seconds = /^\d{1,12}$/.test(text) ? Number(text) : 0;
  if (seconds === 0) throw new ExchangeError('invalid_request', 'The expiration must be a number of seconds');
  return Math.min(seconds, maxSeconds);
}

function required(given: ReadonlyMap<string, string>, name: string): string {
  const value = given.get(name);
  if (!value) throw new ExchangeError('invalid_request', `${name} is missing`);
  return value;
}

function readParameters(body: Buffer, contentType: string): ReadonlyMap<string, string> {
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const given = new Map<string, string>();
  for (const [name, value] of type === 'application/json' ? jsonEntries(body) : formEntries(body, type)) {
    // RFC 6749, 3.2.
    if (given.has(name)) throw new ExchangeError('invalid_request', `${name.slice(0, 60)} is given twice`);
    given.set(name, value);
  }
  return given;
}

function formEntries(body: Buffer, type: string): Iterable<[string, string]> {
  if (type !== '' && type !== 'application/x-www-form-urlencoded')
    throw new ExchangeError('invalid_request', 'The body must be a form (application/x-www-form-urlencoded) or JSON');
  return new URLSearchParams(body.toString('utf8'));
}

function jsonEntries(body: Buffer): [string, string][] {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw new ExchangeError('invalid_request', 'The body is not valid JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ExchangeError('invalid_request', 'The body is not a JSON object');
  return Object.entries(value).flatMap(([name, each]): [string, string][] => {
    if (typeof each === 'string' || typeof each === 'number') return [[name, String(each)]];
    if (each === null || !names.has(name)) return [];
    throw new ExchangeError('invalid_request', `${name.slice(0, 60)} is not text`);
  });
}
