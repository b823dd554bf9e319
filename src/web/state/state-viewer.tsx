import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Download } from 'lucide-react';
import { useState } from 'react';
import { ListTextFilter } from '../platform/app/list-text-filter.tsx';
import { ofVersions } from '../platform/app/of-versions.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { StackRef } from '../platform/app/procedure-types.ts';
import { shortType } from '../platform/app/resource-name.ts';
import { stopsUnread, trpc } from '../platform/app/trpc.ts';
import { AccordionList, AccordionRow } from '../platform/ui/accordion-list.tsx';
import { Button, buttonClass } from '../platform/ui/button.tsx';
import { byteText } from '../platform/ui/byte-text.ts';

import { Empty } from '../platform/ui/empty.tsx';
import { JsonView } from '../platform/ui/json-view.tsx';
import { ListSection } from '../platform/ui/list-bar.tsx';
import { Segments } from '../platform/ui/segments.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { StateText } from './state-text.tsx';
import styles from './state-viewer.module.css';
import { stateTexts } from './texts.tsx';

const pageSize = 100;

interface StateProps {
  readonly stack: StackRef;
  readonly version: number;
  /** Distinguishes it from another version with the same number. */
  readonly id: string;
}

/** Resource by resource, or as text while it is not too large. Secrets are redacted. */
export function StateViewer({ id, stack, version }: StateProps) {
  const [isText, setIsText] = useState(false);
  // Each change reads the whole state, so the read waits until the user pauses.
  const [text = '', setText] = useState<string>();
  const query = useInfiniteQuery(
    trpc.versions.resources.infiniteQueryOptions(
      { ...refOf(stack), version, limit: pageSize, ...(text === '' ? {} : { text }) },
      {
        getNextPageParam: (page) => page.next,
        ...stopsUnread,
        ...ofVersions(id),
        placeholderData: (former) => former,
      },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined) return <Skeleton width="50%" />;
  const [first] = query.data.pages;
  const items = query.data.pages.flatMap((page) => page.items);
  const showsText = isText && first?.isText === true;
  return (
    <ListSection
      label={stateTexts.ofVersion(version)}
      bar={
        <>
          <Segments
            label={stateTexts.show}
            value={showsText ? 'text' : 'resources'}
            options={[
              { value: 'resources', label: stateTexts.byResource },
              { value: 'text', label: stateTexts.text, why: first?.isText ? undefined : stateTexts.tooLarge },
            ]}
            onChange={(value) => setIsText(value === 'text')}
          />
          {showsText ? null : (
            <ListTextFilter
              label={stateTexts.filter}
              placeholder={stateTexts.filterHint}
              value={text}
              onText={setText}
            />
          )}
          <a className={buttonClass({ size: 'small' })} href={downloadPath(stack, version)} download>
            <Download size={14} aria-hidden="true" />
            {stateTexts.download}
          </a>
        </>
      }
      facts={first && stateTexts.facts(first.resourceCount, byteText(first.sizeBytes))}
    >
      {showsText ? (
        <StateText stack={stack} version={version} id={id} />
      ) : items.length === 0 ? (
        <Empty title={text === '' ? stateTexts.none : stateTexts.noMatch}>
          <p>{text === '' ? stateTexts.empty : stateTexts.noMatchHint}</p>
        </Empty>
      ) : (
        <>
          {/* A resource pending deletion has the same URN as its replacement; versions do not change. */}
          <AccordionList
            items={items}
            keyOf={(_, at) => at}
            row={(item) => <ResourceText stack={stack} version={version} id={id} item={item} />}
          />
          {query.hasNextPage ? (
            <Button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
              {stateTexts.more}
            </Button>
          ) : null}
        </>
      )}
    </ListSection>
  );
}

/** The URL of the state as stored, including ciphertexts. */
function downloadPath({ organization, project, stack }: StackRef, version: number): string {
  return `/trpc/states/${[organization, project, stack, String(version)].map(encodeURIComponent).join('/')}`;
}

function refOf({ organization, project, stack }: StackRef): StackRef {
  return { organization, project, stack };
}

interface Item {
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  readonly bytes: number;
  readonly isDeleted: boolean;
}

function ResourceText({ item, ...state }: StateProps & { readonly item: Item }) {
  return (
    <AccordionRow
      name={item.name}
      type={shortType(item.type)}
      urn={item.urn}
      fact={item.isDeleted ? stateTexts.toBeDeleted : byteText(item.bytes)}
    >
      {() => (item.isDeleted ? null : <Values {...state} urn={item.urn} />)}
    </AccordionRow>
  );
}

function Values({ id: versionId, stack, urn, version }: StateProps & { readonly urn: string }) {
  const query = useQuery(
    trpc.resources.get.queryOptions({ ...refOf(stack), urn, version }, { ...stopsUnread, ...ofVersions(versionId) }),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined) return <Skeleton width="40%" />;
  const { dependencies, id, inputs, outputs, parent, protect } = query.data;
  const all = { urn, id, parent, protect, dependencies, inputs, outputs };
  const shown = Object.fromEntries(
    Object.entries(all).filter(([, value]) => value !== null && value !== false && !isEmptyList(value)),
  );
  return (
    <div className={styles['values']}>
      <JsonView label={stateTexts.ofUrn(urn)} value={shown} />
    </div>
  );
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
