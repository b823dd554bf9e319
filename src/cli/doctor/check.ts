import { Type } from 'typebox';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';
import { withTimeout } from '../../shared/platform/timeout/with-timeout.ts';

/** Checks run at the same time, and `holdfast doctor` may take ten seconds in total. */
export const checkMs = 6_000;

export const Finding = Type.Object({
  name: Type.String(),
  status: Type.Union([Type.Literal('ok'), Type.Literal('warn'), Type.Literal('fail')]),
  /** One sentence without secrets. */
  seen: Type.String(),
  /** One sentence; null: none is needed. */
  fix: Nullable(Type.String()),
});
export type Finding = Type.Static<typeof Finding>;

/** Null: the check does not apply here, or another check that it depends on has failed. */
export type Outcome = Omit<Finding, 'name'> | null;

/** The name never changes its meaning. */
export interface Check {
  readonly name: string;
  readonly run: () => Promise<Outcome>;
}

export const ok = (seen: string): Outcome => ({ status: 'ok', seen, fix: null });
export const warn = (seen: string, fix: string): Outcome => ({ status: 'warn', seen, fix });
export const fail = (seen: string, fix: string): Outcome => ({ status: 'fail', seen, fix });

/** Runs all checks at the same time. A check that does not end, or throws, has failed. */
export async function runChecks(checks: readonly Check[], limitMs: number): Promise<Finding[]> {
  const findings = await Promise.all(
    checks.map(async ({ name, run }): Promise<Finding | null> => {
      // A wrapper that also catches synchronous errors.
      const running = (async () => run())();
      const outcome = await withTimeout(running, limitMs, () => new LateError(limitMs)).catch((error: unknown) =>
        fail(
          sentenceOf(error),
          error instanceof LateError
            ? 'Find what does not answer: a host, a network, a firewall or a disk.'
            : 'Fix what the message names.',
        ),
      );
      return outcome && { name, ...outcome };
    }),
  );
  return findings.filter((finding) => finding !== null);
}

class LateError extends Error {
  constructor(limitMs: number) {
    super(`There was no answer within ${limitMs / 1000} s.`);
  }
}

export function sentenceOf(error: unknown): string {
  const messages: string[] = [];
  let current = error as { message?: unknown; code?: unknown; cause?: unknown; errors?: unknown[] } | undefined;
  for (let depth = 0; depth < 4 && typeof current === 'object' && current !== null; depth++) {
    const { message, code, errors } = current;
    const text = String(message || (errors?.[0] as Error | undefined)?.message || code || current).split('\n')[0];
    if (text && !messages.some((each) => each.includes(text))) messages.push(text);
    current = current.cause as typeof current;
  }
  return messages.join(': ') || String(error);
}
