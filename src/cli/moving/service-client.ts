import { setTimeout as wait } from 'node:timers/promises';
import { TransferError } from '../../shared/diy/diy-layout.ts';
import { holdfastVersion } from '../../shared/platform/config/config.ts';
import { shortReason, unreachableReason } from '../../shared/platform/kms/kms-requests.ts';
import { tlsFaultOf } from '../../shared/platform/tls/certificates.ts';
import { refusalIn, retryAfterMs } from '../http/answers.ts';

/** The source would also refuse a repetition. */
export class SourceRefusedError extends TransferError {}

/** The source has nothing at the path. */
export class SourceLacksError extends TransferError {}

/** The source does not answer, or accepts no calls with this token: the request itself is not at fault. */
export class SourceUnavailableError extends TransferError {}

/** A response broke off. Reading it again may succeed. */
class SourceBrokenError extends SourceUnavailableError {}

/** The source has answered that it does not have the requested object. */
export function isRefusal(error: unknown): boolean {
  return error instanceof SourceLacksError || error instanceof SourceRefusedError;
}

/** The version that a later pass needs for a stack whose newest version the source refuses. */
export const orNewerVersion = 'this version, or a newer one, which `pulumi stack import` makes in the source';

/** Before the first response, the address is more likely wrong than the service busy. */
const firstAttempts = 2;
const attempts = 8;
const maxWaitMs = 30_000;
/** If the service requests a longer wait, this one is used: the operator may end the command. */
const maxRetryAfterMs = 5 * 60_000;
/** The response may pause for this long. */
const stallMs = 60_000;
const maxJsonBytes = 256 * 1024 * 1024;

export interface Call {
  readonly method?: 'GET' | 'POST';
  readonly body?: object;
}

/** One call at a time for each caller, and no faster than the service permits. */
export class ServiceClient {
  readonly origin: string;
  readonly #token: string;
  #hasAnswered = false;

  constructor({ origin, token }: { readonly origin: string; readonly token: string }) {
    this.origin = origin;
    this.#token = token;
  }

  /** Read again if the response breaks off. Throws TransferError. */
  async json(path: string, call: Call = {}): Promise<unknown> {
    const text = (await this.buffer(path, call)).toString('utf8');
    try {
      return JSON.parse(text);
    } catch (error) {
      throw this.#notJson(path, error);
    }
  }

  /** Throws TransferError. */
  buffer(path: string, call: Call = {}): Promise<Buffer> {
    return retryBroken(async () => {
      const parts: Buffer[] = [];
      let bytes = 0;
      for await (const part of this.bytes(path, call)) {
        bytes += part.length;
        if (bytes > maxJsonBytes)
          throw new TransferError(`${this.origin}${path} answers with more than ${maxJsonBytes} bytes`);
        parts.push(part);
      }
      return Buffer.concat(parts);
    });
  }

  /** Throws TransferError; SourceBrokenError in the middle of the response. */
  async *bytes(path: string, call: Call = {}): AsyncGenerator<Buffer> {
    const { abort, response } = await this.#respond(path, call);
    const reader = response.body?.getReader();
    try {
      while (reader) {
        // The time that the caller takes to process a chunk does not count.
        const timer = setTimeout(abort, stallMs);
        const { done, value } = await reader.read().finally(() => clearTimeout(timer));
        if (done) return;
        yield Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      }
    } catch (error) {
      throw new SourceBrokenError(`${this.origin}${path}: the response broke off: ${unreachableReason(error)}`, {
        cause: error,
      });
    } finally {
      abort();
    }
  }

  async #respond(path: string, call: Call): Promise<{ response: Response; abort: () => void }> {
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt >= (this.#hasAnswered ? attempts : firstAttempts);
      const controller = new AbortController();
      const abort = (): void => controller.abort();
      const timer = setTimeout(() => controller.abort(new DOMException('', 'TimeoutError')), stallMs);
      let response: Response;
      try {
        response = await this.#send(path, call, controller.signal);
      } catch (error) {
        const fault = tlsFaultOf(error);
        clearTimeout(timer);
        // Another attempt would not help.
        if (isLast || fault !== null)
          throw new SourceUnavailableError(`${this.origin}: ${fault ?? unreachableReason(error)}`, { cause: error });
        await wait(backOff(attempt, null));
        continue;
      }
      if (response.ok) {
        clearTimeout(timer);
        this.#hasAnswered = true;
        if (!/\bjson\b/.test(response.headers.get('content-type') ?? '')) {
          abort();
          throw this.#notJson(path);
        }
        return { response, abort };
      }
      const text = await response.text().catch(() => '');
      clearTimeout(timer);
      const isPassing = response.status === 429 || response.status >= 500;
      if (!isPassing || isLast) throw this.#refused(path, call, response, text);
      await wait(backOff(attempt, response.headers.get('retry-after')));
    }
  }

  /** A redirect would send the token elsewhere. */
  #send(path: string, { body, method = body ? 'POST' : 'GET' }: Call, signal: AbortSignal): Promise<Response> {
    return fetch(`${this.origin}${path}`, {
      ...{ method, redirect: 'manual', signal },
      headers: {
        accept: 'application/vnd.pulumi+9',
        authorization: `token ${this.#token}`,
        'content-type': 'application/json',
        'user-agent': `holdfast/${holdfastVersion}`,
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  }

  #notJson(path: string, cause?: unknown): TransferError {
    return new SourceUnavailableError(
      `${this.origin}${path} does not answer with JSON: name the address of the API, such as https://api.pulumi.com`,
      { cause },
    );
  }

  #refused(
    path: string,
    { body, method = body ? 'POST' : 'GET' }: Call,
    { headers, status }: Response,
    text: string,
  ): TransferError {
    const { origin } = this;
    const location = headers.get('location');
    if (status >= 300 && status < 400)
      return new SourceUnavailableError(`${origin} redirects to ${location}: name that URL instead`);
    const because = `(${status}${messageIn(text)})`;
    switch (status) {
      case 401:
        return new SourceUnavailableError(`${origin} does not accept the token in PULUMI_ACCESS_TOKEN ${because}`);
      case 403:
        return new SourceUnavailableError(
          `The token in PULUMI_ACCESS_TOKEN does not permit ${method} ${path} ${because}`,
        );
      case 404:
        return new SourceLacksError(`${origin} does not have ${path} ${because}`);
      case 400:
      case 422:
        return new SourceRefusedError(`${origin} refuses ${method} ${path} ${because}`);
      default:
        return new SourceUnavailableError(`${origin} refuses ${method} ${path} ${because}`);
    }
  }
}

/** Runs `read` again if a response breaks off. */
export async function retryBroken<T>(read: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof SourceBrokenError) || attempt === firstAttempts + 1) throw error;
      await wait(backOff(attempt, null));
    }
  }
}

/** The wait in ms: the time that the service requests, otherwise twice as long each time. Spread, because several stacks wait at once. */
function backOff(attempt: number, retryAfter: string | null): number {
  const asked = retryAfterMs(retryAfter);
  if (asked !== null) return Math.min(asked, maxRetryAfterMs) + Math.random() * 250;
  return Math.min(1000 * 2 ** (attempt - 1), maxWaitMs) * (0.5 + Math.random() / 2);
}

function messageIn(text: string): string {
  const message = refusalIn(text);
  return message === null ? '' : `: ${shortReason(message)}`;
}
