import PQueue from 'p-queue';
import { Progress } from '../output/progress.ts';

/** Some at once; the results are in order. The first error ends it. */
export async function forEachStack<Stack, Result>(
  stacks: readonly Stack[],
  concurrency: number,
  what: string | null,
  work: (stack: Stack) => Promise<Result>,
): Promise<Result[]> {
  const queue = new PQueue({ concurrency });
  const progress = new Progress();
  let done = 0;
  const runs = stacks.map((stack) =>
    queue.add(async () => {
      const result = await work(stack);
      if (what !== null) progress.report(what, ++done, stacks.length);
      return result;
    }),
  );
  try {
    return await Promise.all(runs);
  } catch (error) {
    queue.clear();
    await queue.onIdle();
    throw error;
  }
}
