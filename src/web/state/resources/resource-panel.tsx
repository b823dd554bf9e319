import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { X } from 'lucide-react';
import { type ReactNode, useEffect, useRef } from 'react';
import { PartProblem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { StackRef } from '../../platform/app/procedure-types.ts';
import { nameInUrn, shortType } from '../../platform/app/resource-name.ts';
import { stopsUnread, trpc } from '../../platform/app/trpc.ts';
import { Button } from '../../platform/ui/button.tsx';
import { CopyButton } from '../../platform/ui/code.tsx';
import { ExternalLink } from '../../platform/ui/external-link.tsx';
import { FactList, FactRow } from '../../platform/ui/fact-list.tsx';
import { CheckboxField } from '../../platform/ui/field.tsx';
import { JsonView } from '../../platform/ui/json-view.tsx';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { Secret } from '../../secrets/secret.tsx';
import { CommitLink } from '../../updates/commit-link.tsx';
import { resourceTexts } from '../texts.tsx';
import { annotation, useBlame } from './blame-note.tsx';
import styles from './resource-panel.module.css';

const historySize = 20;
const maxPaths = 12;

interface ResourcePanelProps {
  readonly stack: StackRef;
  readonly urn: string;
  /** Whether to show the version that set each property. */
  readonly isBlaming: boolean;
  readonly onBlame: (isBlaming: boolean) => void;
  readonly onOpen: (urn: string) => void;
  readonly onClose: () => void;
  /**
   * Whether the user has opened the resource, and continues in it: the keyboard would otherwise reach it only after all rows of the list.
   */
  readonly takesFocus: boolean;
}

/** One resource: its type, properties, dependencies and dependents, and the versions that changed it. */
export function ResourcePanel({ isBlaming, onBlame, onClose, onOpen, stack, takesFocus, urn }: ResourcePanelProps) {
  const query = useQuery(trpc.resources.get.queryOptions({ ...stack, urn }, stopsUnread));
  const panel = useRef<HTMLElement>(null);
  // On a phone, it is below the list. Newer browsers return a promise, which is not a cleanup function of the effect.
  useEffect(() => {
    panel.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  const heading = useRef<HTMLHeadingElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when it opens.
  useEffect(() => {
    if (takesFocus) heading.current?.focus({ preventScroll: true });
  }, []);
  const resource = query.data;
  const problem = useProblem(query);
  const blame = useBlame(stack, urn, isBlaming);
  const blameProblem = useProblem(blame);
  return (
    <section ref={panel} className={styles['panel']} aria-label={resourceTexts.resource(nameInUrn(urn))}>
      <header className={styles['head']}>
        <div className={styles['titles']}>
          <h2 ref={heading} tabIndex={-1} className={styles['name']}>
            {nameInUrn(urn)}
          </h2>
          <p className={styles['type']}>{resource === undefined ? '' : shortType(resource.type)}</p>
        </div>
        <Button kind="quiet" size="icon" aria-label={resourceTexts.close} onClick={onClose}>
          <X size={16} />
        </Button>
      </header>
      {problem ? <PartProblem {...problem} /> : query.isPending ? <Skeleton width="70%" /> : null}
      {/* Data that was read before the deletion stays in the query. */}
      {resource === undefined || problem ? null : (
        <>
          <FactList>
            <FactRow name={resourceTexts.urn}>
              <code className={styles['urn']}>{urn}</code>
              <CopyButton text={urn} label={resourceTexts.copyUrn} />
            </FactRow>
            {resource.id === null ? null : (
              <FactRow name={resourceTexts.id}>
                <code>{resource.id}</code>
              </FactRow>
            )}
            {resource.provider === null ? null : (
              <FactRow name={resourceTexts.provider}>
                {resource.provider} {resource.providerVersion}
              </FactRow>
            )}
            {resource.protect ? (
              <FactRow name={resourceTexts.protected}>{resourceTexts.cannotBeDeleted}</FactRow>
            ) : null}
          </FactList>
          {hasProperties(resource.inputs) || hasProperties(resource.outputs) ? (
            <CheckboxField
              label={resourceTexts.blame}
              checked={isBlaming}
              onChange={({ target }) => onBlame(target.checked)}
            />
          ) : null}
          {blameProblem ? <PartProblem {...blameProblem} /> : null}
          <Properties
            title={resourceTexts.inputs}
            part="inputs"
            stack={stack}
            urn={urn}
            value={resource.inputs}
            digest={resource.digests.inputs}
            annotate={annotation(blame.data, stack, 'inputs')}
          />
          <Properties
            title={resourceTexts.outputs}
            part="outputs"
            stack={stack}
            urn={urn}
            value={resource.outputs}
            digest={resource.digests.outputs}
            annotate={annotation(blame.data, stack, 'outputs')}
          />
          <Relatives titleOf={resourceTexts.dependsOn} urns={resource.dependencies} onOpen={onOpen} />
          <Relatives titleOf={resourceTexts.neededBy} urns={resource.dependents} onOpen={onOpen} />
        </>
      )}
      <History stack={stack} urn={urn} />
    </section>
  );
}

function Section({ children, title }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className={styles['section']}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function hasProperties(value: unknown): boolean {
  return value !== null && (typeof value !== 'object' || Object.keys(value).length > 0);
}

function Properties({
  annotate,
  digest,
  part,
  stack,
  title,
  urn,
  value,
}: {
  readonly title: string;
  readonly part: 'inputs' | 'outputs';
  readonly value: unknown;
  /** Identifies `value`, because secrets are identified by their places in it. */
  readonly digest: string | null;
  readonly annotate: ((path: string) => ReactNode) | undefined;
  readonly stack: StackRef;
  readonly urn: string;
}) {
  if (!hasProperties(value)) return null;
  return (
    <Section title={title}>
      <JsonView
        label={title}
        value={value}
        annotate={annotate}
        renderSecret={({ parts, path }) => (
          <Secret
            stack={stack}
            name={path}
            location={{ of: 'resource', urn, part, path: [...parts], ...(digest !== null && { digest }) }}
          />
        )}
      />
    </Section>
  );
}

function Relatives({
  onOpen,
  titleOf,
  urns,
}: {
  readonly titleOf: (resources: number) => string;
  readonly urns: readonly string[];
  readonly onOpen: (urn: string) => void;
}) {
  if (urns.length === 0) return null;
  return (
    <Section title={titleOf(urns.length)}>
      <ul>
        {urns.map((urn) => (
          <li key={urn}>
            <button type="button" className={styles['relative']} title={urn} onClick={() => onOpen(urn)}>
              {nameInUrn(urn)}
            </button>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function History({ stack, urn }: { readonly stack: StackRef; readonly urn: string }) {
  const { organization, project, stack: name } = stack;
  const query = useInfiniteQuery(
    trpc.resources.history.infiniteQueryOptions(
      { organization, project, stack: name, urn, limit: historySize },
      { getNextPageParam: (page) => page.next },
    ),
  );
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  const problem = useProblem(query);
  if (problem)
    return (
      <Section title={resourceTexts.history}>
        <PartProblem {...problem} />
      </Section>
    );
  if (items.length === 0) return null;
  return (
    <Section title={resourceTexts.history}>
      <ol className={styles['history']}>
        {items.map((item) => (
          <li key={item.version}>
            <p>
              <Link
                to="/$organization/$project/$stack/updates/$version"
                params={{ ...stack, version: String(item.version) }}
              >
                {resourceTexts.version(item.version)}
              </Link>{' '}
              {item.change}
            </p>
            <p className={styles['when']}>
              <Time at={item.at} />
              {item.by === null ? null : <span>{item.by}</span>}
              {item.commit === null ? null : <CommitLink commit={item.commit} stack={stack} />}
              {item.ciUrl === null ? null : <ExternalLink href={item.ciUrl}>{resourceTexts.ciRun}</ExternalLink>}
            </p>
            {item.paths === null || item.paths.length === 0 ? null : (
              <p className={styles['paths']}>
                {item.paths.slice(0, maxPaths).join(', ')}
                {item.pathCount > maxPaths
                  ? resourceTexts.andMore(item.pathCount - Math.min(maxPaths, item.paths.length))
                  : ''}
              </p>
            )}
          </li>
        ))}
      </ol>
      {query.hasNextPage ? (
        <Button size="small" kind="quiet" onClick={() => void query.fetchNextPage()}>
          {resourceTexts.olderVersions}
        </Button>
      ) : null}
    </Section>
  );
}
