// The name of what has the focus, and whether that is seen: an outline, on itself or on what stands beside it.
() => {
  const e = document.activeElement;
  const styles = [e, e.nextElementSibling].filter(Boolean).map((one) => getComputedStyle(one));
  const seen = styles.some(
    ({ outlineStyle, outlineWidth }) => outlineStyle !== "none" && parseFloat(outlineWidth) >= 2,
  );
  return { name: (e.getAttribute("aria-label") || e.textContent).trim(), seen };
};
