import { initTRPC, TRPCError } from '@trpc/server';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import type { Permission } from '../../shared/identity/permissions.ts';
import type { CallerAccess } from '../access/admission.ts';
import { nowhere, type ProcedureContext } from './context.ts';
import { causeOf, shapeOf } from './errors.ts';
import { input, OrganizationInput, StackInput } from './inputs.ts';

/** What a procedure declares. The app does not start with one that lacks something of it. */
export interface ProcedureMeta {
  readonly access?: CallerAccess;
  /** Its action in the audit log, if it changes something. */
  readonly audit?: AuditAction;
}

const t = initTRPC
  .context<ProcedureContext>()
  .meta<ProcedureMeta>()
  .create({
    isDev: false,
    errorFormatter: ({ error, path }) => shapeOf(error, path ?? null),
    sse: { ping: { enabled: true, intervalMs: 25_000 }, client: { reconnectAfterInactivityMs: 60_000 } },
  });

export const { router } = t;

/** Runs a call in its turn, and records its duration and outcome. */
const observed = t.procedure.use(async ({ ctx, next, path }) => {
  const startedAt = performance.now();
  const result = await ctx.request.inTurn(() => next());
  const ms = performance.now() - startedAt;
  const code = result.ok ? 'ok' : shapeOf(result.error, path).data.code;
  ctx.services.metrics.procedureSeconds.labels(path, code).observe(ms / 1000);
  ctx.request.log.info({ procedure: path, code, ms: Math.round(ms) }, 'procedure');
  if (!result.ok && code === 'INTERNAL_SERVER_ERROR')
    ctx.request.log.error({ err: causeOf(result.error) }, 'procedure failed');
  return result;
});

const ofUser = { kind: 'user' } as const;

/** For everybody who is signed in, by a browser or a token. */
export const userProcedure = observed.meta({ access: ofUser }).use(async ({ ctx, next }) => {
  const caller = await ctx.request.admit(ofUser, nowhere);
  return next({ ctx: { caller } });
});

/** For those who belong to the organization of the input, or manage it. */
export function organizationProcedure(permission: 'read' | 'manage') {
  const access = { kind: 'organization', permission } as const;
  return observed
    .meta({ access })
    .input(input(OrganizationInput))
    .use(async ({ ctx, input: { organization }, next }) => {
      const caller = await ctx.request.admit(access, { ...nowhere, organization });
      return next({ ctx: { caller } });
    });
}

/** For those who have the permission on the stack of the input. */
export function stackProcedure(permission: Permission) {
  const access = { kind: 'stack', permission } as const;
  return observed
    .meta({ access })
    .input(input(StackInput))
    .use(async ({ ctx, input: ref, next }) => {
      const caller = await ctx.request.admit(access, ref);
      return next({ ctx: { caller } });
    });
}

/** For those who have the permission on the stack of the input, and change something. No success leaves it that is not recorded. */
export function stackMutation(permission: Permission, action: AuditAction) {
  const access = { kind: 'stack', permission } as const;
  return observed
    .meta({ access, audit: action })
    .input(input(StackInput))
    .use(async ({ ctx, input: ref, next, path }) => {
      const caller = await ctx.request.admit(access, ref, action);
      const audit = ctx.request.trail(caller, access, action);
      const result = await next({ ctx: { caller, audit } });
      if (!result.ok)
        await ctx.request.recordRefusal(caller, { access, action, place: ref, error: causeOf(result.error) });
      else if (!audit.isSettled)
        throw new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: `${path} was not recorded in the audit log` });
      return result;
    });
}

interface Procedures {
  readonly _def: {
    readonly procedures: Readonly<Record<string, unknown>>;
  };
}

/** Throws if a procedure does not declare who may call it, or changes something and does not declare its action. */
export function assertDeclared({ _def }: Procedures): void {
  for (const [name, procedure] of Object.entries(_def.procedures)) {
    const { meta, type } = (procedure as { _def: { meta?: ProcedureMeta; type: string } })._def;
    if (!meta?.access) throw new Error(`Procedure ${name} does not declare who may call it`);
    if (type === 'mutation' && !meta.audit)
      throw new Error(`Procedure ${name} does not declare its action in the audit log`);
  }
}
