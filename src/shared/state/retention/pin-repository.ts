import { Type } from 'typebox';
import { type Queryable, sql } from '../../platform/db/sql.ts';

const PinRow = Type.Object({ isChanged: Type.Boolean(), isDeleted: Type.Boolean() });

/** Retention keeps the states of pinned versions. */
export function createPinRepository(db: Queryable) {
  return {
    /** `by` null unpins the version. Returns null if no ended version has this number. */
    set: (stackId: string, stackVersion: number, by: string | null) =>
      db.maybeOne(sql.rows(PinRow)`
        /* pins.set */
        with version as (
          select u.id, u.pinned_by, u.state_deleted_at from updates u
          where u.stack_id = ${stackId} and u.stack_version = ${stackVersion} and u.status not in ('not started', 'running')
          for no key update
        ),
        changed as (
          update updates u set pinned_by = ${by} from version v
          where u.id = v.id and v.state_deleted_at is null and (v.pinned_by is null) <> (${by}::text is null) returning 1
        )
        select exists (select 1 from changed) as "isChanged", v.state_deleted_at is not null as "isDeleted" from version v`),
  };
}
