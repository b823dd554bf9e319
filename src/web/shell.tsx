import { Outlet, useParams } from '@tanstack/react-router';
import { Lock, Mail, Menu as MenuIcon, Search } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Breadcrumb } from './platform/app/breadcrumb.tsx';
import { hasPopup, isTyping } from './platform/app/is-typing.ts';
import { useMe } from './platform/app/me.ts';
import { OfflineBanner } from './platform/app/offline-banner.tsx';
import { usePageAction } from './platform/app/page-actions.ts';
import { pageActionTexts, shellTexts } from './platform/texts.tsx';
import { Button } from './platform/ui/button.tsx';
import { lazyPart } from './platform/ui/chunks.tsx';
import { Notice } from './platform/ui/notice.tsx';
import styles from './shell.module.css';
import { Sidebar } from './sidebar.tsx';
import { useWatched } from './updates/watch/watched.ts';

const SidebarDrawer = lazyPart(async () => (await import('./sidebar-drawer.tsx')).default);
const KeyboardHelp = lazyPart(async () => (await import('./keyboard-help.tsx')).default);
const Watcher = lazyPart(async () => (await import('./updates/watch/watcher.tsx')).default);
const CommandPalette = lazyPart(async () => (await import('./command-palette.tsx')).default);
/** The palette is preloaded after this delay: text typed while it loads would be lost. */
const paletteMs = 2_000;

export function Shell() {
  const [isPaletteOpen, setIsPaletteOpen] = useState(false);
  const [isHelpOpen, setIsHelpOpen] = useState(false);
  usePageAction(pageActionTexts.showShortcuts, () => setIsHelpOpen(true));
  const [isRailOpen, setIsRailOpen] = useState(false);
  const { organization } = useParams({ strict: false });
  useEffect(() => {
    const timer = setTimeout(CommandPalette.preload, paletteMs);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { altKey, ctrlKey, key, metaKey, target } = event;
      if (key === '?' && !altKey && !ctrlKey && !metaKey && !isTyping(target) && !hasPopup()) setIsHelpOpen(true);
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 'k') return;
      event.preventDefault();
      // The entries of the palette leave the page and its open content.
      const isFree = !hasPopup();
      setIsPaletteOpen((isOpen) => !isOpen && isFree);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: it does lead there. */}
      <a
        className={styles['skip']}
        href="#content"
        onClick={(event) => {
          // The browser would follow the link, which the router would take for a step back.
          event.preventDefault();
          document.getElementById('content')?.focus();
        }}
      >
        {shellTexts.skip}
      </a>
      <Announcer />
      <div className={styles['shell']}>
        <aside className={styles['rail']}>
          <Sidebar organization={organization} onLeave={() => {}} />
        </aside>
        <header className={styles['bar']}>
          <Button
            kind="quiet"
            size="icon"
            className={styles['railButton']}
            aria-label={shellTexts.openNavigation}
            onClick={() => setIsRailOpen(true)}
          >
            <MenuIcon size={18} />
          </Button>
          <Breadcrumb />
          <button
            type="button"
            className={styles['search']}
            aria-label={shellTexts.goToWithKey}
            aria-keyshortcuts="Control+K Meta+K"
            onClick={() => setIsPaletteOpen(true)}
          >
            <Search size={15} aria-hidden="true" />
            <span className={styles['searchText']}>{shellTexts.goTo}</span>
            <span className={styles['key']}>{shellTexts.key}</span>
          </button>
        </header>
        <main id="content" className={styles['content']} tabIndex={-1}>
          <OfflineBanner />
          <ReadOnlyNotice />
          <InvitationNotice />
          <Outlet />
        </main>
      </div>
      {isRailOpen ? <SidebarDrawer organization={organization} onClose={() => setIsRailOpen(false)} /> : null}
      {useWatched().length > 0 ? <Watcher /> : null}
      {isHelpOpen ? <KeyboardHelp onClose={() => setIsHelpOpen(false)} /> : null}
      {isPaletteOpen ? <CommandPalette organization={organization} onClose={() => setIsPaletteOpen(false)} /> : null}
    </>
  );
}

/** Browsers announce the title only for pages that they load. */
function Announcer() {
  const [title, setTitle] = useState('');
  useEffect(() => {
    let isFirst = true;
    const observer = new MutationObserver(() => {
      if (!isFirst) setTitle(document.title);
      isFirst = false;
    });
    observer.observe(document.querySelector('title') as Node, { childList: true });
    return () => observer.disconnect();
  }, []);
  return (
    <p className="unseen" role="status">
      {title}
    </p>
  );
}

/** Says that the installation is read-only, and why. */
function ReadOnlyNotice() {
  const reason = useMe()?.readOnly ?? null;
  if (reason === null) return null;
  return (
    <Notice tone="warning" icon={<Lock size={17} />} title={shellTexts.readOnly}>
      <p>{reason}</p>
    </Notice>
  );
}

function InvitationNotice() {
  const count = useMe()?.invitations ?? 0;
  if (count === 0) return null;
  return (
    <Notice
      tone="neutral"
      icon={<Mail size={17} />}
      title={shellTexts.invitations(count)}
      action={<a href="/account#invitations">{shellTexts.respond}</a>}
    />
  );
}
