import { setTimeout as wait } from 'node:timers/promises';
import type { CliLogin } from '../../shared/platform/config/cli-login.ts';
import { holdfastVersion } from '../../shared/platform/config/config.ts';
import { codeOf } from '../../shared/platform/errors/causes.ts';
import { unreachableReason } from '../../shared/platform/kms/kms-requests.ts';
import { tlsFaultOf } from '../../shared/platform/tls/certificates.ts';
import { refusalIn, retryAfterMs } from '../http/answers.ts';
import { CallRefusedError, ConfigurationError } from './configuration-error.ts';

const attempts = 6;
const maxWaitMs = 30_000;
/** At least as long as a call may wait for its turn at the server. */
const timeoutMs = 60_000;

export interface ApiResponse {
  // biome-ignore lint/suspicious/noExplicitAny: each kind reads the responses of its own routes.
  readonly json: any;
  readonly etag: string | null;
}

interface CallOptions {
  readonly body?: object;
  /** Sent as If-Match. */
  readonly etag?: string | null | undefined;
}

interface Answer {
  readonly text: string;
  readonly etag: string | null;
}

interface Failure {
  readonly error: ConfigurationError;
  readonly isPassing: boolean;
  /** The server did not respond, and may have made the change. */
  readonly isLost: boolean;
  readonly retryAfter: string | null;
}

/** Calls the API for one organization, or for one of its stacks. Repeats calls that a server or a proxy refuses temporarily. */
export class OrganizationApi {
  readonly organization: string;
  /** An earlier call without a response may have made the same changes. */
  readonly isRepeat: boolean;
  readonly #login: CliLogin;
  readonly #root: string;
  readonly #firstWaitMs: number;
  #roleIds: Promise<ReadonlyMap<string, string>> | null = null;

  /** `root`: the part of the API that paths are relative to. `firstWaitMs`: the wait before the first repetition; it doubles each time. */
  constructor(
    login: CliLogin,
    organization: string,
    root = `orgs/${encodeURIComponent(organization)}`,
    { firstWaitMs = 500, isRepeat = false } = {},
  ) {
    this.#firstWaitMs = firstWaitMs;
    this.#login = login;
    this.#root = root;
    this.isRepeat = isRepeat;
    this.organization = organization;
  }

  get repeating(): OrganizationApi {
    return this.#at(this.#root, true);
  }

  /** The part of the API for site admins. */
  get operator(): OrganizationApi {
    return this.#at('operator', this.isRepeat);
  }

  ofStack(project: string, stack: string): OrganizationApi {
    const names = [this.organization, project, stack].map(encodeURIComponent);
    return this.#at(`stacks/${names.join('/')}`, this.isRepeat);
  }

  #at(root: string, isRepeat: boolean): OrganizationApi {
    return new OrganizationApi(this.#login, this.organization, root, { firstWaitMs: this.#firstWaitMs, isRepeat });
  }

  get = (path: string): Promise<ApiResponse> => this.#call('GET', path, {});
  post = (path: string, body: object): Promise<ApiResponse> => this.#call('POST', path, { body });
  put = (path: string, body: object, etag?: string | null): Promise<ApiResponse> =>
    this.#call('PUT', path, { body, etag });
  patch = (path: string, body: object, etag?: string | null): Promise<ApiResponse> =>
    this.#call('PATCH', path, { body, etag });
  delete = (path: string, etag?: string | null): Promise<ApiResponse> => this.#call('DELETE', path, { etag });

  /** Returns null if nothing exists at the path. */
  async find(path: string): Promise<ApiResponse | null> {
    try {
      return await this.get(path);
    } catch (error) {
      if (error instanceof CallRefusedError && error.status === 404) return null;
      throw error;
    }
  }

  /** All items of a paginated list. */
  // biome-ignore lint/suspicious/noExplicitAny: as in ApiResponse.
  async list(path: string, member: string): Promise<any[]> {
    // biome-ignore lint/suspicious/noExplicitAny: as in ApiResponse.
    const items: any[] = [];
    for (let token: string | undefined = ''; token !== undefined; ) {
      const { json } = await this.get(`${path}?continuationToken=${encodeURIComponent(token)}`);
      items.push(...json[member]);
      token = json.continuationToken;
    }
    return items;
  }

  /** Throws ConfigurationError. */
  async roleId(name: string): Promise<string> {
    this.#roleIds ??= this.#readRoles();
    const roles = await this.#roleIds.catch((error: unknown) => {
      this.#roleIds = null;
      throw error;
    });
    const id = roles.get(name.toLowerCase());
    if (id === undefined) throw new ConfigurationError(`There is no role ${JSON.stringify(name)}`);
    return id;
  }

  async #readRoles(): Promise<ReadonlyMap<string, string>> {
    const { json } = await this.get('roles');
    return new Map(json.roles.map((role: { id: string; name: string }) => [role.name.toLowerCase(), role.id]));
  }

  /** Call after a change of roles. */
  forgetRoles(): void {
    this.#roleIds = null;
  }

  async #call(method: string, path: string, options: CallOptions): Promise<ApiResponse> {
    let wasLost = false;
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#attempt(method, path, options);
      if ('text' in answer)
        return { json: answer.text === '' ? null : parse(answer.text, this.#login), etag: answer.etag };
      const { error, isLost, isPassing, retryAfter } = answer;
      const isLast = !isPassing || attempt === attempts;
      wasLost ||= isLost;
      if (wasLost && (method === 'POST' || (method !== 'GET' && isPassing && isLast)))
        throw new ConfigurationError(`${error.message}; the change may have been made, so look before you repeat it`, {
          cause: error,
        });
      if ((wasLost || this.isRepeat) && error instanceof CallRefusedError) {
        if (method === 'DELETE' && error.status === 404) return { json: null, etag: null };
        error.mayBeMade = true;
      }
      if (isLast) throw error;
      await wait(backOff(attempt, retryAfter, this.#firstWaitMs));
    }
  }

  async #attempt(method: string, path: string, options: CallOptions): Promise<Answer | Failure> {
    try {
      const response = await this.#send(method, path, options);
      const { headers, ok, status } = response;
      const text = await response.text();
      if (ok) return { text, etag: headers.get('etag') };
      return {
        error: this.#refused(status, text),
        isPassing: [429, 502, 503, 504].includes(status),
        isLost: status === 502 || status === 504,
        retryAfter: headers.get('retry-after'),
      };
    } catch (cause) {
      const fault = tlsFaultOf(cause);
      const error = new ConfigurationError(`${this.#login.origin}: ${fault ?? unreachableReason(cause)}`, { cause });
      return { error, isPassing: fault === null, isLost: fault === null && !wasNotSent(cause), retryAfter: null };
    }
  }

  /** A redirect would send the token elsewhere. */
  #send(method: string, path: string, { body, etag }: CallOptions): Promise<Response> {
    const { origin, token } = this.#login;
    return fetch(`${origin}/api/${this.#root}${path === '' ? '' : `/${path}`}`, {
      ...{ method, redirect: 'manual', signal: AbortSignal.timeout(timeoutMs) },
      headers: {
        accept: 'application/vnd.pulumi+9',
        authorization: `token ${token}`,
        'user-agent': `holdfast/${holdfastVersion}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...(etag ? { 'if-match': etag } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  }

  #refused(status: number, text: string): CallRefusedError {
    if (status === 401) return new CallRefusedError(status, `${this.#login.origin} does not accept the token`);
    return new CallRefusedError(status, refusalIn(text) ?? `${this.#login.origin} answers with status ${status}`);
  }
}

/** Whether no server received the call, so that a repetition creates nothing twice. */
function wasNotSent(error: unknown): boolean {
  const code = codeOf((error as Error).cause) ?? '';
  return ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'UND_ERR_CONNECT_TIMEOUT'].includes(code);
}

function parse(text: string, { origin }: CliLogin): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ConfigurationError(`${origin} does not answer with JSON: name the URL of the server`, { cause });
  }
}

/** The wait in ms: it doubles each time, and is at least the requested time. Spread, because several calls may wait at once. */
function backOff(attempt: number, retryAfter: string | null, firstWaitMs: number): number {
  const asked = retryAfterMs(retryAfter) ?? 0;
  return Math.min(Math.max(asked, firstWaitMs * 2 ** (attempt - 1)), maxWaitMs) * (1 + Math.random() / 4);
}
