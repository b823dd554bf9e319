import { InProcessDispatcher } from '../../src/shared/jobs/in-process-dispatcher.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { describeDispatcher, handlersFor, largeBytes } from './dispatcher-suite.ts';

describeDispatcher('the process itself', async ({ work, onEnded, waitMs = 30_000, concurrency = 4 }) => {
  const dispatcher = new InProcessDispatcher(handlersFor(work), {
    concurrency: { small: concurrency, large: concurrency },
    largeBytes,
    waitMs,
    logger: createLogger({ level: 'silent' }),
    onEnded: onEnded ?? (async () => {}),
  });
  return { dispatcher, look: async () => {}, close: () => dispatcher.close() };
});
