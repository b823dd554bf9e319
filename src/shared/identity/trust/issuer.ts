import { Type } from 'typebox';
import { isTokenName } from '../../access/grants.ts';
import { InvalidRequestError } from '../../platform/errors/errors.ts';

/** `within-life`: an id token is exchanged any number of times until it expires. */
const replays = ['once', 'within-life'] as const;
export const Replay = Type.Union([Type.Literal('once'), Type.Literal('within-life')]);
export type Replay = (typeof replays)[number];

const maxUrlChars = 500;
const maxKeys = 50;
const keyTypes = ['RSA', 'EC', 'OKP'];

/** The CLI and CI systems send this `aud`. */
export function audienceOf(organization: string): string {
  return `urn:pulumi:org:${organization}`;
}

/** Each call checks whether the address may be called. Throws InvalidRequestError. */
export function checkIssuer({ audience, name, url }: { name: string; url: string; audience: string }): void {
  if (!isTokenName(name))
    throw new InvalidRequestError(
      'The name of an issuer has 1 to 100 letters, digits, spaces, and _.:@-, and begins with a letter or digit',
    );
  const isUrl = /^https?:\/\//.test(url) && url.length <= maxUrlChars && URL.canParse(url);
  const { search = '', hash = '', username = '' } = isUrl ? new URL(url) : {};
  if (!isUrl || search !== '' || hash !== '' || username !== '' || /[\s?#\0]/.test(url))
    throw new InvalidRequestError(
      `The url of an issuer is the \`iss\` of its tokens: https, without a query, of at most ${maxUrlChars} characters`,
    );
  if (audience.length === 0 || audience.length > maxUrlChars || !audience.isWellFormed() || audience.includes('\0'))
    throw new InvalidRequestError(`The audience has 1 to ${maxUrlChars} characters`);
}

export function parseReplay(text: string): Replay {
  const replay = replays.find((each) => each === text);
  if (replay === undefined) throw new InvalidRequestError(`replay is ${replays.join(' or ')}`);
  return replay;
}

/** The keys must be public. Returns JSON text. Throws InvalidRequestError. */
export function parseKeySet(given: unknown): string {
  const { keys } = (given ?? {}) as { keys?: unknown };
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > maxKeys)
    throw new InvalidRequestError(`jwks has 1 to ${maxKeys} keys`);
  for (const key of keys as Readonly<Record<string, unknown>>[]) {
    const isPublic = typeof key === 'object' && key !== null && keyTypes.includes(String(key['kty']));
    if (!isPublic || ['d', 'k', 'p', 'q'].some((name) => key[name] !== undefined))
      throw new InvalidRequestError(`The keys of jwks are public ones, of type ${keyTypes.join(', ')}`);
  }
  const text = JSON.stringify({ keys });
  if (text.length > 64 * 1024 || text.includes('\\u0000')) throw new InvalidRequestError('jwks is too large');
  return text;
}
