import { type Kms, KmsError, type KmsFault } from './kms.ts';

export interface KmsResponse {
  readonly status: number;
  /** Null if the body is not JSON. */
  readonly json: unknown;
}

const maxReasonLength = 300;

/** Does not follow redirects. Throws KmsError. */
export async function postJson(
  kms: Pick<Kms, 'name'>,
  url: string,
  request: { readonly headers: Readonly<Record<string, string>>; readonly body: object; readonly timeoutMs: number },
): Promise<KmsResponse> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...request.headers },
      body: JSON.stringify(request.body),
      redirect: 'manual',
      signal: AbortSignal.timeout(request.timeoutMs),
    });
    return { status: response.status, json: parsed(await response.text()) };
  } catch (error) {
    throw new KmsError(kms, 'passing', unreachableReason(error));
  }
}

export function unreachableReason(error: unknown): string {
  const { cause, message, name } = error as Error & { cause?: { message?: string; code?: string } };
  if (name === 'TimeoutError') return 'no response in time';
  return `not reachable (${shortReason(cause?.message || cause?.code || message)})`;
}

export function faultOfStatus(status: number): KmsFault {
  return status === 408 || status === 429 || status >= 500 ? 'passing' : 'refused';
}

/** Returns one line of limited length. */
export function shortReason(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, maxReasonLength);
}

export function bytesOf(value: unknown): Buffer | null {
  return typeof value === 'string' && value !== '' ? Buffer.from(value, 'base64') : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // For example the page of a proxy. The status suffices.
    return null;
  }
}
