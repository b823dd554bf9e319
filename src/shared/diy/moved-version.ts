import { Type } from 'typebox';
import { sql } from '../platform/db/sql.ts';
import { Timestamp } from '../platform/schema/standard-schema.ts';

/** Imports and exports transfer these fields and the state. */
export const movedVersion = {
  stackVersion: Type.Integer(),
  kind: Type.String(),
  status: Type.String(),
  message: Type.String(),
  environment: Type.String(),
  config: Type.String(),
  resourceChanges: Type.String(),
  startedAt: Timestamp,
  endedAt: Timestamp,
};

/** For updates `u`. */
export const movedVersionColumns = sql.fragment`
  u.stack_version as "stackVersion", u.kind, u.status, u.message, u.environment, u.config,
  u.resource_changes as "resourceChanges", coalesce(u.started_at, u.created_at) as "startedAt",
  coalesce(u.ended_at, u.created_at) as "endedAt"`;
