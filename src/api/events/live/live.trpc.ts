import { type TrackedEnvelope, tracked } from '@trpc/server';
import { Type } from 'typebox';
import { ForbiddenError } from '../../../shared/platform/errors/errors.ts';
import type { CallTarget } from '../../access/authorize-call.ts';
import { input, text } from '../../access/procedures/inputs.ts';
import { router, userProcedure } from '../../access/procedures/trpc.ts';
import type { LiveService } from './live-service.ts';
import type { LiveMessage } from './live-stream.ts';

declare module '../../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly live: LiveService;
  }
}

const maxTopics = 10;

const SubscribeInput = Type.Object({
  /** `organization:<name>`, `stack:<organization>/<project>/<stack>`, `update:<id>`. */
  topics: Type.Array(text(700), { minItems: 1, maxItems: maxTopics }),
  /** Id of the last message that the client has received; tRPC adds it on a reconnect. */
  lastEventId: Type.Optional(text(100)),
});

export const liveRouter = router({
  /** The page reloads its data after a notification. */
  subscribe: userProcedure.input(input(SubscribeInput)).subscription(async function* ({
    ctx: { caller, request, services },
    input: { lastEventId, topics },
    signal,
  }): AsyncGenerator<TrackedEnvelope<LiveMessage>, void> {
    const gone = signal ?? new AbortController().signal;
    const viewer = {
      id: caller.userId ?? caller.tokenId,
      topics,
      confirm: () => request.holder.confirm(),
      findAt: (target: CallTarget) => request.holder.findAt(target),
      cut: () => request.disconnect(),
    };
    const stream = await services.live.open(viewer, lastEventId ?? null);
    try {
      for (;;) {
        const read = await stream.read(gone);
        if (read === 'rights') throw new ForbiddenError('Your permissions have changed: open a new stream');
        if (read === null || typeof read === 'string') throw new StreamCutError();
        for (const { id, message } of read) yield tracked(id, message);
      }
    } finally {
      services.live.leave(stream);
    }
  }),
});

/** The browser then reconnects, to another replica if this one stops, and resumes. */
class StreamCutError extends Error {
  // The only name of errors that tRPC does not send to the client.
  override readonly name = 'AbortError';
}
