import { Type } from 'typebox';
import { type Queryable, sql } from '../../shared/platform/db/sql.ts';
import type { ListedOrganization } from '../../shared/stacks/stack-list-repository.ts';

const TextRow = Type.Object({ text: Type.String() });

interface Prefix {
  readonly begin: string;
  readonly limit: number;
}

/** Each name or value is found by one index lookup, regardless of the number of stacks that have it. */
export function createTagRepository(db: Queryable) {
  const isReadable = ({ facts, id }: ListedOrganization) =>
    facts === null
      ? sql.fragment`true`
      : sql.fragment`effective_permissions(${facts}::jsonb, ${id}, l.project_name, l.stack_name) & 1 = 1`;
  return {
    /** Tag names of readable stacks, in order. */
    listNames: (organization: ListedOrganization, { begin, limit }: Prefix) => {
      const next = (after: ReturnType<typeof sql.fragment>) => sql.fragment`
        select l.tag_name from stack_listings l
        where l.organization_id = ${organization.id} and l.tag_name <> '' and ${after}
          and starts_with(l.tag_name, ${begin}) and ${isReadable(organization)}
        order by l.tag_name limit 1`;
      return db.any(sql.rows(TextRow)`
        /* tags.listNames */
        with recursive found (text) as (
          (${next(sql.fragment`true`)})
          union all select (${next(sql.fragment`l.tag_name > f.text`)}) from found f where f.text is not null)
        select text from found where text is not null limit ${limit}`);
    },

    /** Values of a tag of readable stacks, in order. */
    listValues: (organization: ListedOrganization, name: string, { begin, limit }: Prefix) => {
      const next = (after: ReturnType<typeof sql.fragment>) => sql.fragment`
        select l.tag_value from stack_listings l
        where l.organization_id = ${organization.id} and l.tag_name = ${name} and l.tag_name <> '' and ${after}
          and starts_with(l.tag_value, ${begin}) and ${isReadable(organization)}
        order by l.tag_value limit 1`;
      return db.any(sql.rows(TextRow)`
        /* tags.listValues */
        with recursive found (text) as (
          (${next(sql.fragment`true`)})
          union all select (${next(sql.fragment`l.tag_value > f.text`)}) from found f where f.text is not null)
        select text from found where text is not null limit ${limit}`);
    },
  };
}
