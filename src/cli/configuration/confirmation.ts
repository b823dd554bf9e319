import { createInterface } from 'node:readline/promises';

/** Ctrl-D means no; Ctrl-C is `interrupted`. */
export async function confirm(
  question: string,
  streams: { input: NodeJS.ReadableStream; output: NodeJS.WritableStream; terminal?: boolean },
): Promise<'yes' | 'no' | 'interrupted'> {
  const lines = createInterface(streams);
  const ended = new AbortController();
  let unanswered: 'no' | 'interrupted' = 'no';
  lines.once('SIGINT', () => {
    unanswered = 'interrupted';
    ended.abort();
  });
  lines.once('close', () => ended.abort());
  try {
    return /^y(es)?$/i.test((await lines.question(question, { signal: ended.signal })).trim()) ? 'yes' : 'no';
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    return unanswered;
  } finally {
    lines.close();
  }
}
