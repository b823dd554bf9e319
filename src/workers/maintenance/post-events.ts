/** What came of a request: its status, or why there is none. */
export type Posted = { readonly status: number } | { readonly reason: string };

const maxReasonLength = 200;

/**
 * Posts to the receiver that the operator has set, whose address may be a private one. Follows no redirect: the token is for this
 * receiver. The reason of a failure contains neither the URL nor the token.
 */
export async function postEvents(
  url: string,
  request: {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
  },
): Promise<Posted> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: request.headers,
      body: request.body,
      redirect: 'manual',
      signal: AbortSignal.any([request.signal, AbortSignal.timeout(request.timeoutMs)]),
    });
    await response.body?.cancel();
    return { status: response.status };
  } catch (error) {
    const { cause, message, name } = error as Error & { cause?: { message?: string; code?: string } };
    if (name === 'TimeoutError') return { reason: 'no response in time' };
    return { reason: (cause?.message || cause?.code || message).slice(0, maxReasonLength) };
  }
}
