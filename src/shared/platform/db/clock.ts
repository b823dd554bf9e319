import { Type } from 'typebox';
import { Timestamp } from '../schema/standard-schema.ts';
import { type Queryable, sql } from './sql.ts';

const TimeRow = Type.Object({ time: Timestamp });
const PastRow = Type.Object({ past: Type.Boolean() });

/** Returns the database's time `seconds` from now. */
export async function timeIn(db: Queryable, seconds: number): Promise<Date> {
  const row = await db.one(sql.rows(TimeRow)`
    /* clock.timeIn */ select clock_timestamp() + make_interval(secs => ${seconds}) as time`);
  return row.time;
}

/** Whether the database's clock has reached the time. */
export async function isPast(db: Queryable, time: string): Promise<boolean> {
  const row = await db.one(sql.rows(PastRow)`
    /* clock.isPast */ select clock_timestamp() >= ${time}::timestamptz as past`);
  return row.past;
}
