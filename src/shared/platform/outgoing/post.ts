import type { IncomingHttpHeaders } from 'node:http';
import { type Outgoing, OutgoingError } from './outgoing.ts';

/** The reason contains no URL or address, and may be shown. */
export type Posted =
  | { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string }
  | { readonly reason: string };

export interface PostRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

const maxResponseBytes = 4_096;

const reasons: Readonly<Record<OutgoingError['reason'], string>> = {
  refused: 'this server may not be called: it is not HTTPS, or its address is not public',
  failed: 'the server could not be reached',
  'too-large': 'the response is too large',
  'too-slow': 'no response in time',
};

/** Follows no redirect, because tokens and signatures are for this receiver. Never throws. */
export async function post(outgoing: Outgoing, url: string, request: PostRequest): Promise<Posted> {
  try {
    const { body, headers, status } = await outgoing.call(url, {
      method: 'POST',
      headers: request.headers,
      body: Buffer.from(request.body),
      timeoutMs: request.timeoutMs,
      maxBytes: maxResponseBytes,
      whenTooLarge: 'cut',
      signal: request.signal,
    });
    return { status, headers, body: body.toString('utf8') };
  } catch (error) {
    if (error instanceof OutgoingError) return { reason: reasons[error.reason] };
    return { reason: 'the request could not be made' };
  }
}

export function isAccepted(posted: Posted): boolean {
  return 'status' in posted && posted.status >= 200 && posted.status < 300;
}
