import { useNavigate } from '@tanstack/react-router';
import { ChevronDown, ChevronUp, CircleX, Download, Info, TriangleAlert } from 'lucide-react';
import { useEffect, useMemo, useState } from 'react';
import { ListTextFilter } from '../platform/app/list-text-filter.tsx';
import type { UpdateDetails } from '../platform/app/procedure-types.ts';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { Button } from '../platform/ui/button.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { ListSection, ListToggle } from '../platform/ui/list-bar.tsx';
import { saveFile } from '../platform/ui/save-file.ts';
import { ColoredSpans } from './colored.tsx';
import {
  cutLines,
  findLines,
  groupMessages,
  linesOf,
  type MessageGroup,
  messagesAsText,
  placeOfLine,
  type ShownMessage,
} from './message-lines.ts';
import styles from './message-list.module.css';
import { messageListTexts } from './texts.tsx';
import type { UpdateSearch } from './update-search.ts';
import { isActive } from './update-status.ts';
import { hasRead, type LiveProgress } from './use-progress.ts';

const icons = { debug: Info, info: Info, warning: TriangleAlert, error: CircleX } as const;
const labels = messageListTexts.severities;
/** A browser takes minutes to draw all lines of a log of debug output. */
const pageLines = 1_000;
const inPlace = { to: '.', replace: true, resetScroll: false } as const;

interface MessageListProps {
  readonly live: LiveProgress;
  readonly update: UpdateDetails;
  readonly search: UpdateSearch;
}

/** Messages are listed by resource. Each line has an address. */
export function MessageList({ live, search, update }: MessageListProps) {
  const { feed, revision } = live;
  const navigate = useNavigate();
  const change = (changes: Partial<UpdateSearch>): void =>
    void navigate({ ...inPlace, search: (before) => ({ ...before, ...changes }) });
  // Enter may already have chosen a line with the same text.
  const find = (typed: string | undefined): void =>
    void navigate({
      ...inPlace,
      search: (before) => (before.text === typed ? before : { ...before, text: typed, line: undefined }),
    });
  const [chosen, choose] = useState({ from: 0, count: pageLines });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tree is changed in place; its revision says when.
  const groups = useMemo(() => groupMessages(feed.progress), [feed, revision]);
  const text = search.text ?? '';
  const found = useMemo(() => findLines(groups, text), [groups, text]);
  const { line } = search;
  const place = useMemo(() => (line === undefined ? -1 : placeOfLine(groups, line)), [groups, line]);
  const isOutside = place >= 0 && (place < chosen.from || place >= chosen.from + chosen.count);
  const from = isOutside ? Math.max(0, place - pageLines / 2) : chosen.from;
  const count = isOutside ? pageLines : chosen.count;
  const shown = useMemo(() => cutLines(groups, { from, count }), [groups, from, count]);
  const isThere = place >= 0;
  useEffect(() => {
    if (line !== undefined && isThere) document.getElementById(`line-${line}`)?.scrollIntoView({ block: 'center' });
  }, [line, isThere]);
  if (groups.length === 0) {
    return (
      <Empty
        title={
          !hasRead(live, update)
            ? messageListTexts.readingTheMessages
            : isActive(update)
              ? messageListTexts.noMessagesYet
              : messageListTexts.noMessages
        }
      >
        <p>{messageListTexts.noMessagesHint}</p>
      </Empty>
    );
  }
  const at = line === undefined ? -1 : found.indexOf(line);
  /** `typed`: the text of the field, which reaches the URL a moment later. */
  const go = (step: 1 | -1, typed = text): void => {
    const lines = typed === text ? found : findLines(groups, typed);
    const from = line === undefined ? -1 : lines.indexOf(line);
    if (lines.length === 0) return;
    const next = from < 0 ? (step > 0 ? 0 : lines.length - 1) : (from + step + lines.length) % lines.length;
    change({ text: typed || undefined, line: lines[next] });
  };
  const hits = new Set(found);
  return (
    <ListSection
      label={messageListTexts.messages}
      bar={
        <>
          <search
            className={styles['search']}
            onKeyDown={({ key, nativeEvent, shiftKey, target }) => {
              if (key !== 'Enter' || nativeEvent.isComposing || !(target instanceof HTMLInputElement)) return;
              go(shiftKey ? -1 : 1, target.value.trim());
            }}
          >
            <ListTextFilter
              label={messageListTexts.searchInMessages}
              placeholder={messageListTexts.searchInMessages}
              value={text}
              onText={find}
            />
            <Button
              size="icon"
              kind="quiet"
              aria-label={messageListTexts.previousMatch}
              disabled={found.length === 0}
              onClick={() => go(-1)}
            >
              <ChevronUp size={16} />
            </Button>
            <Button
              size="icon"
              kind="quiet"
              aria-label={messageListTexts.nextMatch}
              disabled={found.length === 0}
              onClick={() => go(1)}
            >
              <ChevronDown size={16} />
            </Button>
            <span role="status" className={styles['count']}>
              {text.trim() === ''
                ? ''
                : found.length === 0
                  ? messageListTexts.noLineMatches
                  : messageListTexts.matches(at, at + 1, found.length)}
            </span>
          </search>
          <ListToggle isOn={search.wrap === undefined} onChange={(isOn) => change({ wrap: isOn ? undefined : '0' })}>
            {messageListTexts.wrapLines}
          </ListToggle>
          <Button size="small" onClick={() => download(groups, update)}>
            <Download size={15} aria-hidden="true" />
            {messageListTexts.download}
          </Button>
        </>
      }
    >
      <div className={`${styles['groups']} ${search.wrap === '0' ? styles['long'] : ''}`}>
        {from === 0 ? null : (
          <Button
            className={styles['more']}
            onClick={() => choose({ from: Math.max(0, from - pageLines), count: count + Math.min(from, pageLines) })}
          >
            {messageListTexts.showEarlier}
          </Button>
        )}
        {shown.groups.map(({ messages, type, urn }) => (
          <section key={urn ?? ''} className={styles['group']}>
            <h2 className={styles['title']} title={urn ?? undefined}>
              {urn === null ? (
                messageListTexts.engineAndProgram
              ) : (
                <>
                  <code>{nameInUrn(urn)}</code> <span className={styles['type']}>{shortType(type)}</span>
                </>
              )}
            </h2>
            <ul className={styles['list']}>
              {messages.map((message) => (
                <Message
                  key={message.diagnostic.sequence}
                  shown={message}
                  hits={hits}
                  line={line}
                  onLine={(id) => change({ line: id })}
                />
              ))}
            </ul>
          </section>
        ))}
        {from + count < shown.total ? (
          <Button className={styles['more']} onClick={() => choose({ from, count: count + pageLines })}>
            {messageListTexts.showMore(shown.total)}
          </Button>
        ) : null}
      </div>
    </ListSection>
  );
}

function download(groups: readonly MessageGroup[], { updateId }: UpdateDetails): void {
  saveFile(new Blob([messagesAsText(groups)], { type: 'text/plain' }), `${updateId}.log`);
}

interface MessageProps {
  readonly shown: ShownMessage;
  readonly hits: ReadonlySet<string>;
  readonly line: string | undefined;
  readonly onLine: (id: string) => void;
}

function Message({ hits, line, onLine, shown: { diagnostic, from, until } }: MessageProps) {
  const { policy, severity } = diagnostic;
  const Icon = icons[severity];
  return (
    <li className={`${styles['message']} ${styles[severity]}`}>
      <span className={styles['icon']} title={labels[severity]}>
        <Icon size={15} aria-hidden="true" />
        <span className="unseen">{labels[severity]}</span>
      </span>
      <div className={styles['body']}>
        {policy === null ? null : (
          <p className={styles['policy']}>{messageListTexts.policyOf(policy.name, policy.pack, policy.isMandatory)}</p>
        )}
        <div className={styles['text']}>
          {linesOf(diagnostic)
            .slice(from, until)
            .map(({ id, number, spans }) => (
              <div
                key={id}
                id={`line-${id}`}
                className={[styles['line'], hits.has(id) && styles['hit'], line === id && styles['current']]
                  .filter(Boolean)
                  .join(' ')}
                aria-current={line === id ? 'true' : undefined}
              >
                {/* After a search, the address of a line is in the URL, too. The link is no tab stop: thousands of them would hinder
                    keyboard users. */}
                <button
                  type="button"
                  tabIndex={-1}
                  className={styles['number']}
                  aria-label={messageListTexts.linkToLine(number)}
                  onClick={() => onLine(id)}
                >
                  {number}
                </button>
                <ColoredSpans spans={spans} />
              </div>
            ))}
        </div>
      </div>
    </li>
  );
}
