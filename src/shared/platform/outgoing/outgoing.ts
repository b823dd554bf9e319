import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { holdfastVersion } from '../config/config.ts';
import { messageOf } from '../errors/causes.ts';
import { type AllowList, isAllowedAddress, isAllowedUrl, isTrustedHost } from './address-rules.ts';
import { onFailure } from './failed-request.ts';
import { createHostResolver, type ResolvedAddress, type ResolveHost } from './host-resolver.ts';

/** `refused`: the server may not be called. The message is for the log, never for clients. */
export class OutgoingError extends Error {
  override readonly name = 'OutgoingError';
  readonly reason: 'refused' | 'failed' | 'too-large' | 'too-slow';

  constructor(reason: OutgoingError['reason'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

export interface OutgoingOptions {
  readonly allow: AllowList;
  /** PEM; replaces the authorities of the process. */
  readonly ca?: string;
  readonly resolve?: ResolveHost;
}

export interface OutgoingRequest {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** The limit of the whole call, including redirects. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** By default, a longer body is an error. */
  readonly whenTooLarge?: 'fail' | 'cut';
  readonly signal?: AbortSignal;
}

export interface OutgoingResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The resolver limits its lookups per process. */
const resolveHost = createHostResolver();
/** Only GET follows redirects. Each redirect is checked like the first address. */
const maxRedirects = 3;
const redirects = new Set([301, 302, 303, 307, 308]);
const maxHeaderBytes = 16 * 1024;

/**
 * Users provide the URLs, e.g. of token issuers and webhook receivers. Only HTTPS and public addresses are permitted, unless the operator
 * allows others. The name is resolved once. The connection uses a checked address, and the certificate must be for the name.
 */
export class Outgoing {
  readonly #allow: AllowList;
  readonly #ca: string | undefined;
  readonly #resolve: ResolveHost;

  constructor({ allow, ca, resolve = resolveHost }: OutgoingOptions) {
    this.#allow = allow;
    this.#ca = ca;
    this.#resolve = resolve;
  }

  /** Returns a response of any status. Throws OutgoingError. */
  async call(address: string, request: OutgoingRequest): Promise<OutgoingResponse> {
    const limit = AbortSignal.timeout(request.timeoutMs);
    const signal = request.signal ? AbortSignal.any([limit, request.signal]) : limit;
    let url = parseUrl(address);
    // Does not depend on how a resolver or a connection handles the signal.
    const late = new Promise<never>((_resolve, reject) => {
      const end = (): void => reject(new OutgoingError('too-slow', `${url.origin} took too long`));
      if (signal.aborted) end();
      signal.addEventListener('abort', end, { once: true });
    });
    for (let followed = 0; ; followed++) {
      const response = await Promise.race([this.#callOnce(url, request, signal), late]);
      const { location } = response.headers;
      if (!redirects.has(response.status) || location === undefined || (request.method ?? 'GET') !== 'GET')
        return response;
      if (followed === maxRedirects) throw new OutgoingError('refused', `${url.origin} redirects too often`);
      url = parseUrl(location, url);
    }
  }

  async #callOnce(url: URL, request: OutgoingRequest, signal: AbortSignal): Promise<OutgoingResponse> {
    if (!isAllowedUrl(url, this.#allow))
      throw new OutgoingError(
        'refused',
        `${url.protocol}//${url.host} is not an allowed URL: HTTPS, without a password`,
      );
    const target = await this.#addressesOf(url, signal);
    try {
      return await this.#send(url, target, request, signal);
    } catch (error) {
      if (error instanceof OutgoingError) throw error;
      throw new OutgoingError('failed', `${url.origin} could not be called: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** All addresses must be allowed: a name with public and private addresses is an attack or a mistake. */
  async #addressesOf(url: URL, signal: AbortSignal): Promise<readonly ResolvedAddress[]> {
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const family = isIP(host);
    const isTrusted = isTrustedHost(url, this.#allow);
    const found = family === 0 ? await this.#lookUp(host, isTrusted, signal) : [{ address: host, family }];
    const wrong = isTrusted ? undefined : found.find(({ address }) => !isAllowedAddress(address, this.#allow));
    if (wrong)
      throw new OutgoingError(
        'refused',
        `${host} is at ${wrong.address}, which is not a public address; HOLDFAST_OUTGOING_ALLOW allows others`,
      );
    return found;
  }

  async #lookUp(host: string, isTrusted: boolean, signal: AbortSignal): Promise<readonly ResolvedAddress[]> {
    try {
      const found = await this.#resolve(host, { isTrusted, signal });
      if (found.length === 0) throw new Error('no addresses');
      return found;
    } catch (error) {
      throw new OutgoingError('failed', `${host} could not be resolved: ${messageOf(error)}`, { cause: error });
    }
  }

  #send(
    url: URL,
    addresses: readonly ResolvedAddress[],
    { method = 'GET', headers = {}, body, maxBytes, whenTooLarge = 'fail' }: OutgoingRequest,
    signal: AbortSignal,
  ): Promise<OutgoingResponse> {
    const options: https.RequestOptions = {
      method,
      headers: {
        'user-agent': `holdfast/${holdfastVersion}`,
        'accept-encoding': 'identity',
        ...headers,
        ...(body === undefined ? {} : { 'content-length': body.length }),
      },
      // A pooled connection may lead to an address that was not checked for this call.
      agent: false,
      lookup: pinned(addresses),
      maxHeaderSize: maxHeaderBytes,
      signal,
      ...(this.#ca === undefined ? {} : { ca: this.#ca }),
    };
    return new Promise((resolve, reject) => {
      const request = (url.protocol === 'https:' ? https : http).request(url, options, (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        const end = (): void =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes <= maxBytes) return void chunks.push(chunk);
          if (whenTooLarge === 'cut') {
            chunks.push(chunk.subarray(0, chunk.length - (bytes - maxBytes)));
            end();
            request.destroy();
            return;
          }
          // Reject first, because a short response may have ended already.
          reject(new OutgoingError('too-large', `${url.origin} sent more than ${maxBytes} bytes`));
          request.destroy();
        });
        response.on('error', reject);
        response.once('end', end);
      });
      onFailure(request, reject);
      request.end(body);
    });
  }
}

/** Returns the checked addresses, whatever the name resolves to by now. */
function pinned(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    if (all) callback(null, [...addresses]);
    else callback(null, (addresses[0] as ResolvedAddress).address, (addresses[0] as ResolvedAddress).family);
  };
}

function parseUrl(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw new OutgoingError('refused', 'the URL is not valid');
  return new URL(text, base);
}
