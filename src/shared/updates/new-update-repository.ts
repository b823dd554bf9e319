import { Type } from 'typebox';
import type { AuditAction } from '../audit/audit-actions.ts';
import { type AuditSource, detailsJson } from '../audit/audit-event.ts';
import { auditInsertion } from '../audit/audit-repository.ts';
import { type Queryable, sql } from '../platform/db/sql.ts';
import type { UpdateKind } from './update-state.ts';

const IdRow = Type.Object({ id: Type.String() });

export interface NewUpdate {
  readonly stackId: string;
  readonly kind: UpdateKind;
  readonly dryRun: boolean;
  readonly exclusive: boolean;
  readonly baseStackVersion: number;
  readonly message: string;
  readonly environment: string;
  readonly ciRun: string | null;
  readonly config: string;
  /** See cli-texts.ts. */
  readonly cliEnvironment: string | null;
  readonly cliConfig: string | null;
  readonly program: string;
  readonly requestedBy: string | null;
  readonly tokenId: string;
  readonly waitSeconds: number;
  /** The caller's wait for the stack, in ms; null without one. */
  readonly waitedMs: number | null;
  /** The stack's tags at the arrival of the call, as JSON text, if they were changed while it waited. */
  readonly tagsAtArrival: string | null;
  /** Names in the audit log. */
  readonly organization: string;
  readonly object: string;
  /** Whether the update may begin although journal entries of its stack could not be replayed. */
  readonly admitsFault: boolean;
}

export function createNewUpdateRepository(db: Queryable) {
  return {
    /**
     * Also lets an exclusive update hold its stack, and adds `action` to the audit log. Returns null if the stack has a fault that the
     * update does not admit. Violates `updates_one_active_per_stack` if another exclusive update is active.
     */
    insert: async (update: NewUpdate, source: AuditSource, action: AuditAction): Promise<string | null> => {
      const { dryRun, kind, stackId } = update;
      const event = {
        action,
        organization: sql.fragment`${update.organization}::text`,
        object: sql.fragment`${update.object}`,
        outcome: 'done' as const,
        updateId: sql.fragment`created.id`,
        ciRun: sql.fragment`${update.ciRun}::text`,
        details: sql.fragment`${detailsJson({ stackId, kind, dryRun })}`,
      };
      const row = await db.maybeOne(sql.prepared('updates_insert', IdRow)`
        /* updates.insert */
        with created as (
          insert into updates (stack_id, kind, dry_run, exclusive, status, base_stack_version, message, environment, config,
                               cli_environment, cli_config, program, requested_by, token_id, ci_run, waited_ms, tags_at_arrival, expires_at)
          select ${update.stackId}, ${update.kind}, ${update.dryRun}, ${update.exclusive}, 'not started',
                  ${update.baseStackVersion}, ${update.message}, ${update.environment}, ${update.config},
                  ${update.cliEnvironment}::text, ${update.cliConfig}::text, ${update.program},
                  ${update.requestedBy}, ${update.tokenId}, ${update.ciRun}::text, ${update.waitedMs}::integer, ${update.tagsAtArrival}::text,
                  clock_timestamp() + make_interval(secs => ${update.waitSeconds})
          where ${update.admitsFault}::boolean or not exists (
            select 1 from journals j where j.stack_id = ${update.stackId} and j.accepted_at is null and j.compaction_error is not null)
          returning id, stack_id, exclusive),
        holder as (
          update stacks s set active_update_id = created.id from created where s.id = created.stack_id and created.exclusive),
        recorded as (${auditInsertion(source, event, sql.fragment`created`)})
        select id from created`);
      return row?.id ?? null;
    },
  };
}
