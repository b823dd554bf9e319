import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { ArrowRight } from 'lucide-react';
import { useDeferredValue, useState } from 'react';
import type { StackRef } from '../../platform/app/contract.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { StackPageSearch } from '../../platform/app/stack-search.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { Button } from '../../platform/ui/button.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { CheckboxField, TextField } from '../../platform/ui/field.tsx';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { type DifferenceLabels, Differences } from './differences.tsx';
import styles from './stack-compare.module.css';

const pageSize = 50;
const maxFound = 8;

/** This stack beside another one: resources of the same type and name, and how they differ. */
export function StackCompare({ search, stack }: { readonly stack: StackRef; readonly search: StackPageSearch }) {
  const navigate = useNavigate();
  const change = (changes: Partial<StackPageSearch>): void =>
    void navigate({ to: '.', search: { ...search, ...changes }, replace: true, resetScroll: false });
  const other = parseName(search.other);
  return (
    <section className={styles['compare']} aria-label="Comparison with another stack">
      {other === null ? (
        <Picker stack={stack} onPick={(name) => change({ other: name })} />
      ) : (
        <>
          <header className={styles['head']}>
            <h2 className={styles['names']}>
              <span>{shortName(stack)}</span>
              <ArrowRight size={16} aria-label="compared with" />
              <span>{other.organization === stack.organization ? shortName(other) : fullName(other)}</span>
            </h2>
            <Button size="small" onClick={() => change({ other: undefined, secrets: undefined })}>
              Change stack
            </Button>
          </header>
          <Comparison stack={stack} other={other} search={search} onChange={change} />
        </>
      )}
    </section>
  );
}

function Picker({ onPick, stack }: { readonly stack: StackRef; readonly onPick: (name: string) => void }) {
  const [typed, setTyped] = useState(`${stack.project}/`);
  const text = useDeferredValue(typed.trim());
  const query = useQuery(
    trpc.stacks.list.queryOptions(
      { ...(text === '' ? {} : { text }), limit: maxFound + 1 },
      { placeholderData: (former) => former },
    ),
  );
  const problem = useProblem(query);
  const found = (query.data?.items ?? []).filter((each) => fullName(each) !== fullName(stack)).slice(0, maxFound);
  return (
    <div className={styles['picker']}>
      <TextField
        label="Compare with"
        type="search"
        hint="Part of a stack name"
        value={typed}
        onChange={({ target }) => setTyped(target.value)}
      />
      {problem ? <Problem {...problem} /> : query.isPending ? <Skeleton width="40%" /> : null}
      {found.length === 0 && query.isSuccess ? (
        <Empty title="No other stack matches">
          <p>Stacks of the same project are the usual choice, such as the staging stack.</p>
        </Empty>
      ) : (
        <ul className={styles['found']} aria-label="Stacks">
          {found.map((each) => (
            <li key={fullName(each)}>
              <button type="button" onClick={() => onPick(fullName(each))}>
                <span className={styles['name']}>
                  <span className={styles['project']}>{each.project}/</span>
                  {each.stack}
                </span>
                <span className={styles['about']}>
                  {each.organization === stack.organization ? '' : `${each.organization}, `}version {each.version}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Comparison({
  onChange,
  other,
  search,
  stack,
}: {
  readonly stack: StackRef;
  readonly other: StackRef;
  readonly search: StackPageSearch;
  readonly onChange: (changes: Partial<StackPageSearch>) => void;
}) {
  const { organization, project, stack: name } = stack;
  const options = {
    ...(search.outputs === undefined ? {} : { outputs: true }),
    ...(search.secrets === undefined ? {} : { secrets: true }),
  };
  const query = useInfiniteQuery(
    trpc.versions.diffStacks.infiniteQueryOptions(
      { organization, project, stack: name, other, limit: pageSize, ...options },
      {
        getNextPageParam: (page) => page.next,
        // With secrets, the audit log records each read.
        ...(search.secrets === undefined ? {} : { refetchOnWindowFocus: false, staleTime: Number.POSITIVE_INFINITY }),
      },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined) return <Skeleton width="50%" />;
  const [first] = query.data.pages;
  if (first === undefined) return null;
  const items = query.data.pages.flatMap((page) => page.items);
  const { secretsNotCompared } = first;
  return (
    <>
      <div className={styles['options']}>
        <CheckboxField
          label="Compare outputs"
          checked={search.outputs !== undefined}
          onChange={({ target }) => onChange({ outputs: target.checked ? '1' : undefined })}
        />
        {first.mayCompareSecrets ? (
          <CheckboxField
            label="Show which secrets differ"
            hint="The server decrypts the secrets of both stacks, and the audit log records it. No value is shown."
            checked={search.secrets !== undefined}
            onChange={({ target }) => onChange({ secrets: target.checked ? '1' : undefined })}
          />
        ) : null}
      </div>
      <p className={styles['facts']}>
        Version {first.fromVersion} of {name} and version {first.toVersion} of {other.stack}: {first.same}{' '}
        {first.same === 1 ? 'resource is' : 'resources are'} in both. {first.total}{' '}
        {first.total === 1 ? 'differs, or is in only one' : 'differ, or are in only one'}.
        {secretsNotCompared > 0
          ? ` ${secretsNotCompared} ${secretsNotCompared === 1 ? 'secret was' : 'secrets were'} not compared.`
          : ''}
      </p>
      {items.length === 0 ? (
        <Empty title="No resource differs">
          <p>Ids{search.outputs === undefined ? ' and outputs' : ''} are specific to each stack and not compared.</p>
        </Empty>
      ) : (
        <Differences items={items} labels={labelsOf(stack, other)} />
      )}
      {query.hasNextPage ? (
        <Button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          More differences
        </Button>
      ) : null}
    </>
  );
}

function labelsOf(stack: StackRef, other: StackRef): DifferenceLabels {
  const isSameName = stack.stack === other.stack;
  const [one, two] = isSameName ? [shortName(stack), shortName(other)] : [stack.stack, other.stack];
  return {
    changes: { created: `only in ${two}`, deleted: `only in ${one}`, updated: 'in both', replaced: 'in both' },
    before: one,
    after: two,
  };
}

function fullName({ organization, project, stack }: StackRef): string {
  return `${organization}/${project}/${stack}`;
}

function shortName({ project, stack }: StackRef): string {
  return `${project}/${stack}`;
}

function parseName(name: string | undefined): StackRef | null {
  const [organization = '', project = '', stack = '', ...more] = (name ?? '').split('/');
  return organization === '' || project === '' || stack === '' || more.length > 0
    ? null
    : { organization, project, stack };
}
