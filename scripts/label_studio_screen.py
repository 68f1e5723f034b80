"""Look at the labelling screen in headless Chromium: label one task by clicking, keep a picture.

Needs Chromium with its driver (Debian: chromium, chromium-driver) and selenium in the environment that runs
Label Studio. Reads one JSON command from standard input: url, email, password, project (its number) and
picture (where to keep it).
"""

import json
import sys
import tempfile
import time
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


def main(told: dict[str, Any]) -> None:
    """Sign in, open the labelling stream, choose, submit."""
    options = webdriver.ChromeOptions()
    for flag in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--window-size=1400,1500", f"--user-data-dir={tempfile.mkdtemp()}",
    ):  # fmt: skip
        options.add_argument(flag)
    options.binary_location = "/usr/bin/chromium"
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
    try:
        wait = WebDriverWait(driver, 120)
        driver.get(f"{told['url']}/user/login/")
        wait.until(lambda d: d.find_element(By.NAME, "email")).send_keys(told["email"])
        driver.find_element(By.NAME, "password").send_keys(told["password"])
        driver.find_element(By.CSS_SELECTOR, "form [type=submit]").click()
        wait.until(lambda d: "/login" not in d.current_url)
        driver.get(f"{told['url']}/projects/{told['project']}/data?labeling=1")
        wait.until(lambda d: "Which answer is better?" in d.find_element(By.TAG_NAME, "body").text)

        def click(text: str) -> None:
            label = f"//label[contains(., '{text}')] | //span[contains(text(), '{text}')]"
            driver.execute_script("arguments[0].click()", driver.find_elements(By.XPATH, label)[0])
            time.sleep(1)

        click("Answer B is better")
        click("Citation support")
        driver.save_screenshot(told["picture"])
        submit = wait.until(lambda d: d.find_element(By.CSS_SELECTOR, "button[aria-label*='ubmit']"))
        driver.execute_script("arguments[0].click()", submit)
        time.sleep(4)
        print(driver.find_element(By.TAG_NAME, "body").text[:300])
    finally:
        driver.quit()


if __name__ == "__main__":
    main(json.load(sys.stdin))
