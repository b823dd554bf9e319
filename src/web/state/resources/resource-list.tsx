import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { ChevronDown, ChevronRight } from 'lucide-react';
import { type ReactNode, useMemo, useRef, useState } from 'react';
import { ListTextFilter } from '../../platform/app/list-text-filter.tsx';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { ResourceItem, ResourcePage, StackRef } from '../../platform/app/procedure-types.ts';
import type { StackPageSearch } from '../../platform/app/stack-search.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { Button } from '../../platform/ui/button.tsx';
import { lazyPart } from '../../platform/ui/chunks.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { ListSection } from '../../platform/ui/list-bar.tsx';
import { fetchMore } from '../../platform/ui/paged-list.ts';
import { PrintNote } from '../../platform/ui/print-note.tsx';
import { Segments } from '../../platform/ui/segments.tsx';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { VirtualList } from '../../platform/ui/virtual-list.tsx';
import { resourceListTexts } from '../texts.tsx';
import styles from './resource-list.module.css';
import { ResourcePanel } from './resource-panel.tsx';
import { ResourceRow, withKeys } from './resource-row.tsx';

const ResourceGraph = lazyPart(async () => (await import('./resource-graph.tsx')).default, <Rows />);

const pageSize = 100;
const rowPixels = 40;
const shapes = [
  { value: undefined, label: resourceListTexts.list },
  { value: 'tree', label: resourceListTexts.tree },
  { value: 'graph', label: resourceListTexts.graph },
] as const;

interface ResourceListProps {
  readonly stack: StackRef;
  readonly search: StackPageSearch;
}

export function ResourceList({ search, stack }: ResourceListProps) {
  const navigate = useNavigate();
  const change = (changes: Partial<StackPageSearch>): void =>
    void navigate({ to: '.', search: (before) => ({ ...before, ...changes }), replace: true, resetScroll: false });
  const list = useRef<HTMLDivElement>(null);
  const [isOpened, setIsOpened] = useState(false);
  const open = (urn: string): void => {
    setIsOpened(true);
    change({ urn });
  };
  const close = (): void => {
    // The list is virtual: the row may be out of the document.
    const row = list.current?.querySelector<HTMLElement>('[aria-current=true]') ?? document.getElementById('content');
    row?.focus({ preventScroll: row.id === 'content' });
    change({ urn: undefined });
  };
  return (
    <ListSection
      label={resourceListTexts.resources}
      bar={
        <>
          <Segments
            label={resourceListTexts.showAs}
            options={shapes}
            value={search.shape}
            onChange={(shape) => change({ shape })}
          />
          {search.shape === undefined ? (
            <>
              <ListTextFilter
                label={resourceListTexts.byNameLabel}
                placeholder={resourceListTexts.byName}
                value={search.text}
                onText={(text) => change({ text })}
              />
              <ListTextFilter
                label={resourceListTexts.byTypeLabel}
                placeholder={resourceListTexts.byType}
                value={search.type}
                onText={(type) => change({ type })}
              />
            </>
          ) : null}
        </>
      }
    >
      <div className={search.urn === undefined ? styles['alone'] : styles['beside']}>
        <div ref={list} className={styles['main']}>
          {search.shape === undefined ? <FlatList stack={stack} search={search} onOpen={open} /> : null}
          {search.shape === 'tree' ? (
            <TreeLevel stack={stack} parent={null} depth={0} chosen={search.urn} onOpen={open} />
          ) : null}
          {search.shape === 'graph' ? <ResourceGraph stack={stack} chosen={search.urn ?? null} onOpen={open} /> : null}
        </div>
        {search.urn === undefined ? null : (
          <ResourcePanel
            key={search.urn}
            stack={stack}
            urn={search.urn}
            // In a graph, the keys continue from the resource.
            takesFocus={isOpened && search.shape !== 'graph'}
            onOpen={open}
            isBlaming={search.blame !== undefined}
            onBlame={(isBlaming) => change({ blame: isBlaming ? '1' : undefined })}
            onClose={close}
          />
        )}
      </div>
    </ListSection>
  );
}

interface PartProps {
  readonly stack: StackRef;
  readonly onOpen: (urn: string) => void;
}

function FlatList({ onOpen, search, stack }: PartProps & { readonly search: StackPageSearch }) {
  const { organization, project, stack: name } = stack;
  const query = useInfiniteQuery(
    trpc.resources.list.infiniteQueryOptions(
      {
        ...{ organization, project, stack: name, limit: pageSize },
        ...(search.text === undefined ? {} : { text: search.text }),
        ...(search.type === undefined ? {} : { type: search.type }),
      },
      { getNextPageParam: (page) => page.next, placeholderData: (before) => before },
    ),
  );
  const items = useMemo(() => withKeys(query.data?.pages.flatMap((page) => page.items) ?? []), [query.data]);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined) return <Rows />;
  const [page] = query.data.pages;
  if (items.length === 0) return <NoResources isFiltered={search.text !== undefined || search.type !== undefined} />;
  return (
    <>
      <IndexNotification page={page} />
      <VirtualList
        items={items}
        keyOf={keyOf}
        rowPx={rowPixels}
        onEnd={() => fetchMore(query)}
        row={({ resource }) => (
          <ResourceRow resource={resource} isChosen={resource.urn === search.urn} onOpen={onOpen} />
        )}
      />
      <PrintNote count={items.length} hasMore={query.hasNextPage} />
    </>
  );
}

function keyOf({ key }: { readonly key: string }): string {
  return key;
}

/** If it is not the newest ended version. */
function IndexNotification({ page }: { readonly page: ResourcePage | undefined }) {
  if (page === undefined) return null;
  const { headVersion, indexedVersion, newestVersion } = page;
  if (indexedVersion === headVersion && newestVersion === headVersion) return null;
  return (
    <p className={styles['notice']}>
      {indexedVersion === null
        ? resourceListTexts.beingIndexed
        : indexedVersion < newestVersion
          ? resourceListTexts.ofVersion(indexedVersion, newestVersion)
          : resourceListTexts.soFar(newestVersion)}
    </p>
  );
}

interface TreeLevelProps extends PartProps {
  readonly parent: string | null;
  readonly depth: number;
  readonly chosen: string | undefined;
}

/** The children are loaded when the resource is opened. */
function TreeLevel({ chosen, depth, onOpen, parent, stack }: TreeLevelProps) {
  const { organization, project, stack: name } = stack;
  const query = useInfiniteQuery(
    trpc.resources.tree.infiniteQueryOptions(
      { organization, project, stack: name, parent, limit: pageSize },
      { getNextPageParam: (page) => page.next },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined)
    return depth === 0 ? <Rows /> : <p className={styles['loading']}>{resourceListTexts.loading}</p>;
  const items = query.data.pages.flatMap((page) => page.items);
  if (items.length === 0 && depth === 0) return <NoResources isFiltered={false} />;
  return (
    <ul className={depth === 0 ? styles['tree'] : styles['branch']}>
      {withKeys(items).map(({ key, resource }) => (
        <TreeNode key={key} resource={resource} stack={stack} depth={depth} chosen={chosen} onOpen={onOpen} />
      ))}
      {query.hasNextPage ? (
        <li>
          <Button size="small" kind="quiet" onClick={() => void query.fetchNextPage()}>
            {resourceListTexts.more}
          </Button>
        </li>
      ) : null}
    </ul>
  );
}

/** Levels that are initially expanded. */
const openLevels = 1;

function TreeNode({
  chosen,
  depth,
  onOpen,
  resource,
  stack,
}: Omit<TreeLevelProps, 'parent'> & { readonly resource: ResourceItem }): ReactNode {
  const [isOpen, setIsOpen] = useState(depth < openLevels);
  const hasChildren = resource.children > 0;
  return (
    <li>
      <div className={styles['node']}>
        {hasChildren ? (
          <button
            type="button"
            className={styles['chevron']}
            aria-expanded={isOpen}
            aria-label={isOpen ? resourceListTexts.collapse(resource.name) : resourceListTexts.expand(resource.name)}
            onClick={() => setIsOpen(!isOpen)}
          >
            {isOpen ? <ChevronDown size={14} /> : <ChevronRight size={14} />}
          </button>
        ) : (
          <span className={styles['chevron']} />
        )}
        <ResourceRow resource={resource} isChosen={chosen === resource.urn} onOpen={onOpen} />
      </div>
      {isOpen && hasChildren ? (
        <TreeLevel stack={stack} parent={resource.urn} depth={depth + 1} chosen={chosen} onOpen={onOpen} />
      ) : null}
    </li>
  );
}

function NoResources({ isFiltered }: { readonly isFiltered: boolean }) {
  return (
    <Empty title={isFiltered ? resourceListTexts.noMatch : resourceListTexts.none}>
      <p>{isFiltered ? resourceListTexts.noMatchHint : resourceListTexts.noneHint}</p>
    </Empty>
  );
}

function Rows() {
  return (
    <div className={styles['skeleton']} aria-busy="true">
      {[52, 44, 60, 38, 49, 56].map((width) => (
        <Skeleton key={width} width={`${width}%`} />
      ))}
    </div>
  );
}
