import { createHash } from 'node:crypto';
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  jwtVerify,
} from 'jose';
import type { IssuerRow } from '../../../shared/identity/trust/issuer-repository.ts';
import { refusedGrant } from './exchange-errors.ts';
import type { JwksCache, KeyOfToken } from './jwks-cache.ts';

/** Neither `none` nor HMAC is allowed: a public key would be the secret of HMAC. */
const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
/** Difference between the clocks of issuer and database. */
const toleranceSeconds = 60;
/** A longer one would be a stored credential. */
const maxLifeSeconds = 86_400;
const maxClaimChars = 500;

/** Its issuer, signature, audience and times are verified. */
export interface IdToken {
  readonly claims: JWTPayload;
  /** Identifies the token among those of its issuer. */
  readonly identity: string;
  readonly endsAt: Date;
}

/** The issuer is not verified. Throws ExchangeError. */
export function claimedIssuer(token: string): string {
  try {
    const { alg = 'none', typ } = decodeProtectedHeader(token);
    if (!algorithms.includes(alg)) throw refusedGrant(`the algorithm ${alg.slice(0, 20)} is not accepted`);
    if (typ !== undefined && !/^(application\/)?jwt$/i.test(typ)) throw refusedGrant('it is another kind of token');
    const { iss } = decodeJwt(token);
    if (typeof iss !== 'string' || iss.length > maxClaimChars) throw refusedGrant('it names no issuer');
    return iss;
  } catch (error) {
    if (error instanceof errors.JOSEError || error instanceof TypeError) throw refusedGrant('it is not a JWT', error);
    throw error;
  }
}

/** Registered or published keys. */
export function keysOf(
  { jwks, url }: Pick<IssuerRow, 'jwks' | 'url'>,
  keys: JwksCache,
  only: 'cached' | 'any',
): KeyOfToken {
  if (jwks !== null) return createLocalJWKSet(JSON.parse(jwks) as JSONWebKeySet);
  return only === 'cached' ? keys.cached(url) : keys.of(url);
}

/** `now`: the time of the database. Throws ExchangeError, UnavailableError. */
export async function verifyIdToken(
  token: string,
  issuer: Pick<IssuerRow, 'audience' | 'url'>,
  keys: KeyOfToken,
  now: Date,
): Promise<IdToken> {
  const claims = await verified(token, issuer, keys, now);
  const { exp = 0, iat = 0, jti, sub } = claims;
  if (exp - iat > maxLifeSeconds) throw refusedGrant(`it lives longer than ${maxLifeSeconds} s`);
  if (iat > now.getTime() / 1000 + toleranceSeconds) throw refusedGrant('it was issued in the future');
  if (typeof sub !== 'string' || sub === '') throw refusedGrant('it has no subject');
  if (jti !== undefined && (typeof jti !== 'string' || jti.length > maxClaimChars))
    throw refusedGrant('its id is not valid');
  // The signed content identifies a token without an id; the signature itself may have several forms.
  const signed = token.slice(0, token.lastIndexOf('.'));
  const identity = jti ? `id ${jti}` : `signed ${createHash('sha256').update(signed).digest('base64')}`;
  return { claims, identity, endsAt: new Date((exp + toleranceSeconds) * 1000) };
}

async function verified(
  token: string,
  { audience, url }: Pick<IssuerRow, 'audience' | 'url'>,
  keys: KeyOfToken,
  now: Date,
): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, keys, {
      algorithms,
      issuer: url,
      audience,
      requiredClaims: ['exp', 'iat', 'sub'],
      clockTolerance: toleranceSeconds,
      currentDate: now,
    });
    return payload;
  } catch (error) {
    if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof DOMException)
      throw refusedGrant(`it cannot be verified: ${error.message.slice(0, 200)}`, error);
    throw error;
  }
}
