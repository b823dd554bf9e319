import { currentSpan, inSpan } from './tracing.ts';

/** Longest statement in a span, in characters. */
const maxTextChars = 2_000;

/** Runs a statement in a span with its text, in which values are only placeholders. */
export function inStatementSpan<T>(text: string, host: string, work: () => Promise<T>): Promise<T> {
  if (!currentSpan()?.isRecording()) return work();
  const attributes = {
    'db.system.name': 'postgresql',
    'db.query.text': text.trim().slice(0, maxTextChars),
    'server.address': host,
  };
  return inSpan(`postgres ${summaryOf(text)}`, { role: 'client', attributes }, work);
}

/** The name that repositories give to each statement in its first comment, such as `updates.insertEnded`, or else its verb. */
function summaryOf(text: string): string {
  // The driver puts a query into "select exists" itself.
  const [, name, verb] = /^\s*(?:select exists\(\s*)?(?:\/\* ([\w.]+) \*\/|([a-z]+))/i.exec(text) ?? [];
  return name ?? verb?.toLowerCase() ?? 'statement';
}
