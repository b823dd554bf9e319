import { Type } from 'typebox';
import { input, text } from '../access/procedures/inputs.ts';
import { router, stackScanMutation } from '../access/procedures/trpc.ts';
import type { RevealService } from './reveal-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly reveal: RevealService;
  }
}

const maxDepth = 100;

const Location = Type.Union([
  Type.Object({ of: Type.Literal('output'), name: text(1_000) }),
  Type.Object({ of: Type.Literal('config'), key: text(1_000) }),
  Type.Object({
    of: Type.Literal('resource'),
    urn: text(8_000),
    part: Type.Union([Type.Literal('inputs'), Type.Literal('outputs')]),
    path: Type.Array(Type.Union([text(1_000), Type.Integer({ minimum: 0 })]), { minItems: 1, maxItems: maxDepth }),
    digest: Type.Optional(text(100)),
  }),
]);

export const secretsRouter = router({
  /** One value of the newest state or of the last configuration. Only for values that this server has encrypted. */
  reveal: stackScanMutation('decrypt', 'secret.show')
    .meta({ whileReadOnly: 'it reads' })
    .input(input(Type.Object({ location: Location })))
    .mutation(async ({ ctx: { audit, caller, scan, services }, input: { location, ...ref } }) => ({
      value: await services.reveal.reveal(scan, ref, caller, location, audit),
    })),
});
