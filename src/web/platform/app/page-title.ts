import { useEffect } from 'react';
import { pageTexts } from '../texts.tsx';

/** The title of the browser's tab and history. */
export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = pageTexts.tabTitle(title);
  }, [title]);
}
