import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { OperatorError } from '../errors/errors.ts';
import { trustAuthorities } from '../tls/certificates.ts';
import { readAccessToken } from './access-token.ts';

/** Used by commands that call the API. */
export const serverVariable = 'HOLDFAST_URL';

class NoLoginError extends OperatorError {}

export interface CliLogin {
  /** Without a path. */
  readonly origin: string;
  readonly token: string;
}

/**
 * Looks at the given values, then HOLDFAST_URL and PULUMI_ACCESS_TOKEN, then the login of the Pulumi CLI. Makes the process trust the
 * authorities in HOLDFAST_CA_FILE.
 */
export function findCliLogin(
  given: { readonly url?: string; readonly token?: string },
  env: NodeJS.ProcessEnv = process.env,
): CliLogin {
  const caFile = env['HOLDFAST_CA_FILE'];
  if (caFile) trustAuthorities(caFile, 'HOLDFAST_CA_FILE');
  const stored = readLogins(env);
  // CI sets variables without a value.
  const url = given.url ?? (env[serverVariable] || env['PULUMI_BACKEND_URL'] || stored.current);
  if (url === undefined) throw new NoLoginError('No server: give --url, set HOLDFAST_URL, or run pulumi login');
  const origin = toOrigin(url);
  const token = given.token ?? readAccessToken(env) ?? stored.tokens.get(origin);
  if (token === undefined)
    throw new NoLoginError(`No token for ${origin}: give --token, set PULUMI_ACCESS_TOKEN, or run pulumi login`);
  return { origin, token };
}

/** A configuration may refer to the variable. */
export function readVariable(name: string, env: NodeJS.ProcessEnv = process.env): string | null {
  return env[name] ?? null;
}

function toOrigin(url: string): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new NoLoginError(`${JSON.stringify(url)} is not the URL of a server, such as https://holdfast.example.com`);
  return new URL(url).origin;
}

interface StoredLogins {
  readonly current: string | undefined;
  readonly tokens: ReadonlyMap<string, string>;
}

/** Written by `pulumi login` (sdk/go/common/workspace/creds.go). */
function readLogins(env: NodeJS.ProcessEnv): StoredLogins {
  const folder = env['PULUMI_CREDENTIALS_PATH'] || env['PULUMI_HOME'] || path.join(homedir(), '.pulumi');
  let text: string;
  try {
    text = readFileSync(path.join(folder, 'credentials.json'), 'utf8');
  } catch {
    return { current: undefined, tokens: new Map() };
  }
  try {
    const { accessTokens = {}, current } = JSON.parse(text) as {
      current?: string;
      accessTokens?: Record<string, string>;
    };
    const tokens = Object.entries(accessTokens)
      .filter(([url]) => URL.canParse(url))
      .map(([url, token]): [string, string] => [new URL(url).origin, token]);
    // Logins to folders and buckets are not servers.
    return {
      current: current !== undefined && /^https?:/.test(current) ? current : undefined,
      tokens: new Map(tokens),
    };
  } catch (cause) {
    throw new NoLoginError(`${path.join(folder, 'credentials.json')} is not valid JSON: run pulumi login again`, {
      cause,
    });
  }
}
