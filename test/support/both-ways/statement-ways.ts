import type pg from 'pg';

type Queries = pg.Client | pg.Pool;

/** The functions by which one statement begins or ends an update. */
const functions = ['create_update', 'start_update', 'complete_update'] as const;
export type StatementFunction = (typeof functions)[number];

/** How often a function has decided, and how often it has left that to a transaction. */
export interface Ways {
  readonly name: StatementFunction;
  readonly decided: number;
  readonly left: number;
}

/** Makes the functions of this database count what they decide. */
export function countWays(client: Queries): Promise<void> {
  return wrapFunctions(client, 'true');
}

/** Makes the functions of this database decide nothing, so that transactions decide everything. */
export function decideNothing(client: Queries): Promise<void> {
  return wrapFunctions(client, 'false');
}

/** Makes the functions of this database decide half of what they are asked, whichever half. */
export function decideHalf(client: Queries): Promise<void> {
  return wrapFunctions(client, 'random() < 0.5');
}

export async function readWays(client: Queries): Promise<Ways[]> {
  const { rows } = await client.query<Ways>(
    `select name, count(*) filter (where decided)::integer as decided, count(*) filter (where not decided)::integer as left
     from ways_taken group by name order by name`,
  );
  return rows;
}

async function wrapFunctions(client: Queries, isAsked: string): Promise<void> {
  await client.query('create table ways_taken (name text, decided boolean)');
  for (const name of functions) {
    const { rows } = await client.query<{ parameters: string; names: string; result: string; isSet: boolean }>(
      `select pg_get_function_arguments(p.oid) as parameters, pg_get_function_result(p.oid) as result, p.proretset as "isSet",
         array_to_string(p.proargnames[1 : p.pronargs], ', ') as names
       from pg_proc p where p.proname = $1`,
      [name],
    );
    const [found] = rows;
    if (!found || rows.length > 1) throw new Error(`there must be one function ${name}`);
    const { isSet, names, parameters, result } = found;
    const ask = isSet
      ? `return query select * from ${name}_of_release(${names}); is_decided := found;`
      : `decided := ${name}_of_release(${names}); is_decided := decided is not null;`;
    await client.query(`
      alter function ${name} rename to ${name}_of_release;
      create function ${name}(${parameters}) returns ${result} ${isSet ? 'rows 1' : ''} language plpgsql as $$
      #variable_conflict use_variable
      declare
        is_decided boolean := false;
        decided uuid;
      begin
        if ${isAsked} then ${ask} end if;
        insert into ways_taken values ('${name}', is_decided);
        ${isSet ? 'return;' : 'return decided;'}
      end $$`);
  }
}
